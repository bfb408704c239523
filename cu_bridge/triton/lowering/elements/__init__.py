"""Operations on single elements, on scalars and vectors alike."""
