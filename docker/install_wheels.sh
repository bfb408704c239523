#!/bin/sh
# Install the bundle beside this script into /usr/local, and lay out /opt/maca over the SDK in it.
set -eu
export PYTHONHASHSEED=0

# The bundle's own script names the wheels by version and hash, not by path: pip would note where a file lay. `check`
# says whether they belong together. Bytecode comes last.
PYTHON=python3 sh "$(dirname "$0")/bundle/install.sh" --quiet --no-deps --no-compile --no-cache-dir
python3 -m pip check

sdk=$(python3 -c 'import mxmaca, pathlib; print(pathlib.Path(mxmaca.__file__).parent)')
site=$(dirname "$sdk")

# The classic paths, by links: the SDK's own files exist once.
mkdir -p /opt/maca/tools
for path in "$sdk"/*; do
    name=$(basename "$path")
    case $name in tools | __pycache__ | *.py | py.typed) continue ;; esac
    ln -s "$path" "/opt/maca/$name"
done
toolkit=$sdk/cuda$CUDA_MAJOR
[ -x "$toolkit/bin/cucc" ] || { echo "error: the SDK has no toolkit for CUDA $CUDA_MAJOR" >&2; exit 1; }
ln -s "$toolkit" /opt/maca/tools/cu-bridge

# What no later `pip install` may replace.
python3 - >/opt/maca/constraints.txt <<'LIST'
from importlib import metadata

print("# The packages of this image that pip must not replace; /etc/pip.conf names this file.")
for name in ("mxmaca", "torch", "torchaudio", "torchvision"):
    try:
        print(f"{name}=={metadata.version(name)}")
    except metadata.PackageNotFoundError:
        pass
LIST
printf '[global]\nconstraint = /opt/maca/constraints.txt\ndisable-pip-version-check = true\n' >/etc/pip.conf

# Bytecode names its source's time stamp: give the source the one that it will have in the image, then compile.
find /usr/local /opt/maca /etc/pip.conf -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
find "$site" -name __pycache__ -prune -exec rm -rf {} +
python3 -m compileall -q -j 0 --invalidation-mode timestamp "$site" >/dev/null || true
