"""One source file becomes one object: of a CUDA file in two passes, whose objects are joined."""

import hashlib
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import List, Optional, Sequence, Set

from . import conversions, cuobjdump, messages, objects, rewriting, typenames
from .errors import CuccError
from .flags import Flags
from .options import CUDA, Input
from .rewriting import bodies
from .rewriting.source import Edit, Source
from .rewriting.variables import CONSTANT_INITIALISERS
from .toolchain import Failed, Toolchain, place

PREAMBLE_END = """
extern "C" const mcModuleTable __mxmaca_table_{identity} __attribute__((visibility("hidden")));
static mcModule_t __mxmaca_module;
__attribute__((section("{section}"), used)) static const char __mxmaca_codes[] = "{codes}";
__attribute__((constructor(101))) static void __mxmaca_load() {{
  __asm__ volatile("" : : "r"(__mxmaca_codes));  // so that linkers do not drop them
  __mxmaca_module = __cudaModuleLoad(&__mxmaca_table_{identity});
}}
__attribute__((destructor(101))) static void __mxmaca_unload() {{ __cudaModuleUnload(__mxmaca_module); }}
"""


class Pass:
    """The host pass or the device pass over one file."""

    def __init__(
        self, tools: Toolchain, flags: Flags, source: Input, folder: Path, device: bool, extra: Sequence[str]
    ) -> None:
        self.tools, self.flags, self.source, self.device, self.extra = tools, flags, source, device, extra
        self.name = "device" if device else "host"
        self.preprocessed, self.text, self.object = (folder / f"{self.name}{end}" for end in (".i", ".ii", ".o"))
        self.drops_bodies = device and flags.drops_bodies()
        self.dropped = False  # the host's bodies (bodies.py)
        self.names_types = False  # where the program does not (typenames.py)
        self.bold = True  # Choices.bold
        self.was_bold = False
        self.problem: Optional[Exception] = None
        self.said = ""
        self.unconverted: Sequence[str] = ()  # where a conversion to an integer keeps the processor's result
        self.identity = ""
        self.result: rewriting.Result

    def run(self) -> None:
        try:
            command = self.flags.preprocess(self.source, self.device, str(self.preprocessed))
            self.said = self._capture("preprocess", command)
            begin = time.monotonic()
            self._rewrite()
            self.tools.timed(f"rewrite ({self.name})", time.monotonic() - begin, self.source.path)
            command = [*self.flags.compile(self.device), *self.flags.pass_warnings(self.device)]
            command += ["-pg"] if self.flags.options.flag("profile") and not self.device else []
            self.said += self._compile([*command, *self.extra])
        except Failed as problem:
            self.said += problem.text
            self.problem = problem
        except Exception as problem:  # a thread's exception would be lost
            self.problem = problem

    def _capture(self, phase: str, command: Sequence[str]) -> str:
        return self.tools.capture(command, f"{phase} ({self.name})", self.source.path)

    def _compile(self, command: List[str]) -> str:
        """Compile the rewritten text. In the device pass conversions to integers saturate (conversions.py)."""
        made = [str(self.text), "-o", str(self.object)]
        if not self.device or self.tools.is_clang:
            return self._capture("compile", [*command, *made])
        asked = not conversions.ASKED.isdisjoint(command)
        silent = conversions.SILENT in command
        said = self._capture("compile", [*command, *([] if asked else conversions.WARNING), *made])
        first = said
        if silent or conversions.named(said):
            watching = [] if asked or silent else conversions.WARNING
            converted = self._convert([*command, *watching, *made])
            said = said if converted is None else converted
        self.unconverted = conversions.places(said)
        return first if asked else conversions.without(said)

    def _convert(self, command: Sequence[str]) -> Optional[str]:
        """Compile again with the conversions that saturate. Returns what the compiler said; None: there are none."""
        text = self.result.text
        report = self._report_on(command, text)
        broken: Set[int] = set()
        tried: Sequence[Edit] = ()
        while True:
            edits = conversions.edits(text, report, broken)
            # After a failure that names none of these lines, the text is compiled as it was.
            edits = [] if edits == tried else edits
            if not edits and not tried:
                return None
            converted = Source(text).edited(edits)
            self.text.write_bytes(converted.encode("latin-1"))
            try:
                return self._capture("compile", command)
            except Failed:
                if not edits:
                    raise
                # Where a template converts to a class of the program as well, that may not take what is written.
                broken |= conversions.broken_lines(self._report_on(command, converted))
                tried = edits

    def _report_on(self, command: Sequence[str], text: str) -> str:
        """What the compiler says of a text in places that it has counted itself."""
        numbered = self.text.with_suffix(".numbered.ii")
        numbered.write_bytes(conversions.numbered(text).encode("latin-1"))
        try:
            return self._capture("find conversions", conversions.command(command, str(self.text), str(numbered)))
        except Failed as problem:
            return problem.text

    def _rewrite(self) -> None:
        source = Source(self.preprocessed.read_bytes().decode("latin-1"))
        if self.names_types:
            source = Source(source.edited(typenames.edits(source)))
        dropped = bodies.drop(source) if self.drops_bodies else []
        self.dropped = bool(dropped)
        source = Source(source.edited(dropped)) if dropped else source
        choices = self.flags.choices()._replace(bold=self.bold)
        self.result = rewriting.rewrite(source, self.device, choices)
        self.was_bold = self.result.bold
        written = self.result.text
        if not self.device:
            where = os.path.abspath(self.flags.options.value("output") or self.source.path)
            self.identity = hashlib.sha256(written.encode("latin-1") + where.encode()).hexdigest()[:16]
            codes = " ".join(self.flags.codes())
            written += PREAMBLE_END.format(identity=self.identity, section=cuobjdump.SECTION, codes=codes)
        self.text.write_bytes(written.encode("latin-1"))


class Compilation:
    """Compiling for one run of cucc.

    Args:
        folder: for intermediate files.
    """

    def __init__(self, tools: Toolchain, flags: Flags, folder: Path) -> None:
        self.tools, self.flags, self.options, self.folder = tools, flags, flags.options, folder

    def compile(self, source: Input, output: str, force_pic: bool = False, exported: bool = False) -> None:
        """Make an object file.

        Args:
            exported: the host's names of device variables stay visible.
        """
        pic = ["-fPIC"] if force_pic else []
        if source.language == CUDA:
            self._cuda(source, output, pic, exported)
            return
        command = self.flags.preprocess(source, device=False, output=output)
        command[1] = "-c"
        profile = ["-pg"] if self.options.flag("profile") else []
        self.tools.run([*command, *pic, *profile, *self.flags.warning()])

    def _cuda(self, source: Input, output: str, pic: List[str], exported: bool) -> None:
        if self.options.flag("dry_run"):
            self._dry_run(source, output, pic)
            return
        self.flags.architecture()  # its warning is said first, and once
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        device, host = self._both(source, folder, pic, names_types=False)
        if any(isinstance(one.problem, Failed) and "typename" in one.said for one in (device, host)):
            device, host = self._both(source, folder, pic, names_types=True)
        if isinstance(device.problem, Failed) and device.was_bold and not messages.only_repeats(host.said, device.said):
            # A name or a type may have been mistaken in what a kernel became.
            named_casts = device.result.named_casts
            device = Pass(self.tools, self.flags, source, folder, True, pic)
            device.names_types, device.bold = host.names_types, False
            device.run()
            if named_casts and device.problem is None:
                self.tools.warn(conversions.UNSATURATED, where=source.path)
        if device.dropped and self._wants_bodies(device, host, folder):
            bold = device.bold
            device = Pass(self.tools, self.flags, source, folder, True, pic)
            device.names_types, device.drops_bodies, device.bold = host.names_types, False, bold
            device.run()
        self._report(device, host)
        if not host.object.exists():  # -fsyntax-only
            return
        if "cross-execution-space-call" in self.options.all("errors"):
            self._check_calls(device, host, folder)
        if not any(word in device.result.text for word in CONSTANT_INITIALISERS):
            for name in objects.started_variables(device.object, device.result.variables):
                raise CuccError(f"{source.path}: error: device variable '{name}' needs code to start with")
        joined = folder / "joined.o"
        sharing = objects.Sharing(self.flags.relocatable, exported, device.result.declared_both)
        objects.join(
            host.object,
            device.object,
            joined,
            folder,
            host.identity,
            host.result.variables,
            host.result.device_functions,
            sharing,
            self.tools.run,
        )
        place(joined, output)
        if self.options.flag("keep"):
            files = [file for one in (device, host) for file in (one.text, one.object)]
            for file, kept in zip(files, self.options.kept(source.path)):
                place(file, kept)

    def _report(self, device: Pass, host: Pass) -> None:
        """Say what both passes said.

        Raises:
            Failed: one of them has failed.
        """
        problems = (device.problem, host.problem)
        for problem in problems:
            if problem is not None and not isinstance(problem, Failed):
                raise problem
        sys.stderr.write(messages.merged(host.said, device.said))
        for problem in problems:
            if isinstance(problem, Failed):
                raise Failed(problem.status)
        for warning in device.result.warnings:
            self.tools.warn(warning.text, warning.kind, warning.where)
        for where in device.unconverted:
            self.tools.warn(conversions.UNCONVERTED, where=where)

    def _wants_bodies(self, device: Pass, host: Pass, folder: Path) -> bool:
        """Whether the device pass went wrong without the host's bodies, or its kernels need some of them."""
        if device.problem is not None:
            return not messages.only_repeats(host.said, device.said)
        made = host.problem is None and host.object.exists()  # not under -fsyntax-only
        return made and objects.lacks_bodies(host.object, device.object, folder, self.tools.run)

    def _check_calls(self, device: Pass, host: Pass, folder: Path) -> None:
        """-Werror cross-execution-space-call: the device pass once more without inlining, and what its kernels call.

        Raises:
            CuccError: a kernel calls functions of the host.
        """
        checked = folder / "checked.o"
        command = [self.tools.compiler, "-c", "-x", "c++-cpp-output", *self.flags.shared(), *self.flags.device()]
        # Inline functions and templates must be seen as such.
        self.tools.run([*command, "-fno-whole-program", "-w", "-O0", "-g1", str(device.text), "-o", str(checked)])
        names = [name for name, _, _ in objects.kernels(objects.symbols(host.object))]
        found = objects.host_calls(checked, names, device.result.device_functions, folder, self.tools.run)
        lines = [
            f'{where}: error: calling a __host__ function("{objects.demangled(name)}") from device code is not '
            "allowed [-Werror cross-execution-space-call]"
            for name, where in found
        ]
        if lines:
            raise CuccError("\n".join(lines))

    def _both(self, source: Input, folder: Path, pic: List[str], names_types: bool) -> List[Pass]:
        """The device pass and the host pass, side by side."""
        both = [Pass(self.tools, self.flags, source, folder, device, pic) for device in (True, False)]
        for one in both:
            one.names_types = names_types
        threads = [threading.Thread(target=one.run) for one in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return both

    def _dry_run(self, source: Input, output: str, pic: List[str]) -> None:
        for device, name in ((True, "device.ii"), (False, "host.ii")):
            self.tools.show(self.flags.preprocess(source, device, name))
            self.tools.show([*self.flags.compile(device), *self.flags.warning(), *pic, name])
        self.tools.show(["ld", "-r", "host.o", "device.o", "-o", output])
