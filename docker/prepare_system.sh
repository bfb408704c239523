#!/bin/sh
# Make a bare Debian or Ubuntu the system of the image: packages.txt, a user, nothing that a build leaves behind.
# Runs as root, in the Dockerfile or in a tree that debootstrap made; where all is done already it changes nothing.
set -eu
here=$(dirname "$0")
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PYTHONHASHSEED=0

missing=""
packages=$(sed 's/#.*//' "$here/packages.txt")
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    # No service may start while packages are installed.
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    apt-get update -q
    apt-get upgrade -y -q --no-install-recommends
    # With that variable Debian's packages would make bytecode that is compared with its source at every start.
    # shellcheck disable=SC2086  # a list of words on purpose
    env -u SOURCE_DATE_EPOCH apt-get install -y -q --no-install-recommends $missing
    rm /usr/sbin/policy-rc.d
fi

if ! getent passwd maca >/dev/null; then
    # Some bases bring a user of their own, with the number that users expect to have.
    other=$(getent passwd 1000 | cut -d: -f1)
    [ -z "$other" ] || userdel --remove "$other" 2>/dev/null
    getent group render >/dev/null || groupadd --system render
    useradd --create-home --uid 1000 --user-group --groups video,render --shell /bin/bash maca
fi

# pip may be used in this system: what it adds goes to the user's folder or to /usr/local, never to the base's packages.
find /usr/lib/python3* -name EXTERNALLY-MANAGED -delete
sh "$here/clean_system.sh"
