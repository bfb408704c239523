"""What the command line asks for, in the order in which it is made."""

import base64
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from . import link, toolkit
from .compile import Compilation
from .errors import CuccError
from .flags import CAPABILITY, Flags
from .options import OBJECT, Input, Options, describe, parse
from .toolchain import Failed, Toolchain


class Driver:
    """One run of the compiler."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.tools = Toolchain(options)
        self.flags = Flags(options, self.tools)

    def main(self) -> int:
        options = self.options
        if options.flag("version"):
            print(toolkit.version_text(self.flags.major), end="")
            return 0
        if options.flag("help"):
            print(describe())
            return 0
        if options.flag("list_architectures") or options.flag("list_codes"):
            both = options.flag("list_architectures") and options.flag("list_codes")
            virtual, real = f"compute_{CAPABILITY}", f"sm_{CAPABILITY}"
            one = virtual if options.flag("list_architectures") else real
            print(f"arch={virtual},code={real}" if both else one)
            return 0
        # CMake asks for the toolkit's folder with a file that is not there.
        if options.flag("verbose") or options.flag("dry_run"):
            self._show_setting()
        sources = [Input.of(path, given) for path, given in options.inputs]
        if not sources:
            raise CuccError("cucc: fatal: No input files specified; use option --help for more information")
        for source in sources:
            missing = not os.path.exists(source.path) and source.path != "-" and not source.path.startswith("-l")
            if missing and not options.flag("dry_run") and not options.flag("clean"):
                raise CuccError(f"cucc: fatal: {source.path}: No such file or directory")
        if options.flag("clean"):
            return self._clean(sources)
        parent = None
        if options.flag("beside_output") and self._objects_only():
            parent = os.path.dirname(os.path.abspath(options.value("output") or sources[0].path))
        try:
            temporary = tempfile.TemporaryDirectory(prefix="cucc-", dir=parent)
        except OSError as error:
            raise CuccError(f"cucc: fatal: no folder for intermediate files: {error}") from None
        with temporary as folder:
            status = self._make(sources, Path(folder))
        self.tools.write_times()
        return status

    def _objects_only(self) -> bool:
        return any(map(self.options.flag, ("compile", "device_c", "device_w")))

    def _image(self) -> str:
        """The form in which a module of its own is asked for, which is its files' suffix too; empty for none."""
        return next(filter(self.options.flag, ("cubin", "fatbin", "ptx")), "")

    def _preprocesses_only(self) -> bool:
        return any(map(self.options.flag, ("preprocess", "dependencies", "user_dependencies")))

    def _clean(self, sources: Sequence[Input]) -> int:
        """Remove what the same command without -clean makes."""
        options, names = self.options, []
        made = [source for source in sources if source.language != OBJECT]
        if self._objects_only():
            names = [options.value("output") or options.beside(source.path, ".o") for source in made]
            for source in made:
                flags = self.flags.dependency(source, only=False)
                names += [flags[at + 1] for at, flag in enumerate(flags) if flag == "-MF"]
        elif self._preprocesses_only():
            names = [name for name in (options.value("output"), options.value("dependency_file")) if name]
        else:
            names = [self._linked_name(sources)]
        if options.flag("keep"):
            names += [name for source in made for name in options.kept(source.path)]
        for name in names:
            if options.flag("verbose") or options.flag("dry_run"):
                self.tools.show(["rm", name])
            if os.path.isfile(name) and not options.flag("dry_run"):
                os.remove(name)
        return 0

    def _linked_name(self, sources: Sequence[Input]) -> str:
        options = self.options
        default = "a.out"
        if options.flag("library"):
            default = "a.a"
        elif options.flag("relocatable_link"):
            default = "a.o"
        elif options.flag("device_link"):
            default = "a_dlink.o"
        elif self._image():
            default = options.beside(sources[0].path, "." + self._image())
        return options.value("output") or default

    def _show_setting(self) -> None:
        top = toolkit.tree(self.flags.major) if toolkit.tree(self.flags.major).is_dir() else toolkit.root()
        for line in (
            "_NVVM_BRANCH_=nvvm",
            "_SPACE_= ",
            "_CUDART_=cudart",
            f"_HERE_={top / 'bin'}",
            f"_THERE_={top / 'bin'}",
            "_TARGET_SIZE_=",
            "_TARGET_DIR_=",
            "_TARGET_SIZE_=64",
            f"TOP={top}",
            f'INCLUDES="-I{top / "include"}"  ',
            # CMake takes the line that holds this text for the link line.
            "LIBRARIES=  " + shlex.quote(f"-L{top / 'lib64'}"),
            "CUDAFE_FLAGS=",
            "PTXAS_FLAGS=",
            # Where CMake learns what is compiled for if nothing says so.
            f"CICC_FLAGS= -arch compute_{self.flags.architecture() // 10}",
        ):
            print("#$ " + line, file=sys.stderr)

    def _make(self, sources: List[Input], folder: Path) -> int:
        options, tools = self.options, self.tools
        if self._preprocesses_only():
            for source in sources:
                output = options.value("output") or None
                tools.run(self.flags.preprocess(source, device=False, output=output, only=True))
            return 0
        if options.flag("device_link"):
            link.device_link(tools, options.value("output") or "a_dlink.o", folder)
            return 0
        to_compile = [source for source in sources if source.language != OBJECT]
        objects_only = self._objects_only()
        if objects_only and options.value("output") and len(to_compile) > 1:
            raise CuccError(
                "cucc: fatal: A single input file is required for a non-link phase when an outputfile is specified"
            )
        image = bool(self._image())
        if image and len(to_compile) > 1:
            raise CuccError(f"cucc: fatal: -{self._image()} makes a module of one source file: call it for each")
        # What becomes a module of its own shows its variables to cuModuleGetGlobal.
        alone = not objects_only and len(to_compile) == 1
        compilation = Compilation(tools, self.flags, folder)
        compiled: Dict[str, str] = {}
        for source in to_compile:
            output = str(folder / f"{len(compiled)}.{Path(source.path).stem}.o")
            if objects_only:
                output = options.value("output") or options.beside(source.path, ".o")
            compilation.compile(source, output, force_pic=image, exported=alone)
            compiled[source.path] = output
        if objects_only:
            return 0
        output = tools.output = self._linked_name(sources)
        as_text = self._image() == "ptx"
        linked = str(folder / "module.so") if as_text else output
        if image:
            # A kernel may be called as a function of the program or of its libraries is: `conj`, `index`.
            options.linker.append("-Bsymbolic")
        link.link(tools, self.flags, sources, compiled, linked, shared=image or options.flag("shared"))
        if as_text and not options.flag("dry_run"):
            Path(output).write_text(module_text(Path(linked).read_bytes()), encoding="ascii")
        if options.flag("run") and not options.flag("dry_run"):
            return subprocess.call([os.path.abspath(output), *options.all("run_arguments")])
        return 0


def module_text(module: bytes) -> str:
    """A module of the host as text, which the driver interface loads where programs have PTX.

    The form is that of `shims/common/modules/module_image.h`.
    """
    return "// MXMACA module 1: a shared object of the host in base64; no PTX.\n" + base64.encodebytes(module).decode()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Compile and link as the command line says. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name, position in (("NVCC_PREPEND_FLAGS", 0), ("NVCC_APPEND_FLAGS", len(words))):
        extra = shlex.split(os.environ.get(name, ""))
        words[position:position] = extra
    try:
        return Driver(parse(words)).main()
    except Failed as failed:
        if failed.text:
            sys.stderr.write(failed.text)
        return failed.status
    except CuccError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
