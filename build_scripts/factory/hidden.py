"""Take symbols out of a library that another one defines in their place.

The dynamic linker takes the first definition that it meets, and upstream's library may come before ours. So the name in
the string table of the dynamic symbols is changed in its first letter: the hash table leads to the entry, the
comparison of the names fails, and the search goes on. Nothing moves, and the code stays where it is.
"""

from pathlib import Path
from typing import Set

from ..errors import FactoryError
from . import elf


def hide(path: Path, names: Set[str]) -> None:
    """Hide the dynamic symbols ``names``, which the library must define.

    Raises FactoryError, and changes nothing, where one is missing or shares its text with another name.
    """
    with elf.open_elf(path) as library:
        table = next((section for section in library.sections if section.type == elf.SHT_DYNSYM), None)
        if table is None:
            raise FactoryError(f"{path.name} has no dynamic symbols.")
        strings = library.sections[table.link]
        text = bytes(library.data[strings.offset : strings.offset + strings.size])
        symbols = bytes(library.data[table.offset : table.offset + table.size])
        offsets = {}
        for offset, _, _, section, _, _ in elf.SYMBOL.iter_unpack(symbols):
            name = text[offset : text.index(b"\0", offset)].decode("utf-8", "surrogateescape")
            if name in names and section != elf.SHN_UNDEF:
                offsets[name] = offset
    missing = sorted(names - set(offsets))
    if missing:
        raise FactoryError(f"{path.name} does not define {missing[0]} ({len(missing)} of {len(names)}).")
    for name, offset in offsets.items():
        if offset and text[offset - 1]:  # a linker lets a name be the end of a longer one
            raise FactoryError(f"{path.name}: the name {name} is the end of another one.")
    with path.open("r+b") as file:
        for name, offset in offsets.items():
            file.seek(strings.offset + offset)
            file.write(name[0].swapcase().encode())
