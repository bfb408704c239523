"""Types of templates, named without `typename` where a definition begins: nvcc takes them, g++ before C++20 does not.

template <class T>
Map<T>::iterator Map<T>::find(T key) {    // typename Map<T>::iterator
"""

from typing import List, Optional

from .rewriting.source import WORD, Edit, Source, Token, word_set

SPECIFIERS = word_set("inline static constexpr extern const volatile __inline__ __noinline__ __forceinline__")
# What a type's name does not begin with.
OTHERS = word_set("typename class struct union enum using typedef auto void operator requires concept friend template")


def edits(source: Source) -> List[Edit]:
    """The words that are missing, outside of system headers."""
    found: List[Edit] = []
    for template in source.find("template"):
        first = None if source.is_system(template.start) else _after_header(source, template)
        if first is not None and _names_member_type(source, first):
            found.append(Edit(first.start, first.start, "typename "))
    return found


def _after_header(source: Source, template: Token) -> Optional[Token]:
    """What follows `template <...>` and specifiers, if a definition can begin with it."""
    opener = source.token(template.end)
    close = source.closing_angle(opener.start) if opener.text == "<" else None
    if close is None:
        return None
    token = source.token(close + 1)
    while token.text in SPECIFIERS or token.text.startswith("__mxmaca_"):
        token = source.token(token.end)
    return token if token.kind == WORD and token.text not in OTHERS else None


def _names_member_type(source: Source, token: Token) -> bool:
    """Whether `token` begins the name of a template's member that is the type of what is declared."""
    dependent = arguments = False
    while token.kind == WORD and token.text != "operator":
        following = source.token(token.end)
        if following.text == "<":
            close = source.closing_angle(following.start)
            if close is None:
                return False
            arguments = True
            following = source.token(close + 1)
        if following.text != "::":
            return dependent and (following.kind == WORD or following.text in ("*", "&", "&&"))
        dependent = arguments
        token = source.token(following.end)
        if token.text == "template":
            token = source.token(token.end)
    return False
