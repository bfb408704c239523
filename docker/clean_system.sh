#!/bin/sh
# Remove what an installation leaves behind, and every trace of when and where it ran.
set -eu

rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/*
rm -rf /var/lib/dpkg/*-old /root/.cache
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid- /etc/.pwd.lock
# Manual pages, translations and changelogs are a tenth of the system. The licences stay, and links to folders of them.
find /usr/share/man /usr/share/info /usr/share/locale ! -type d -delete
find /usr/share/doc -mindepth 1 ! -xtype d ! -name copyright -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
find /var/log -type f -delete
find /tmp /var/tmp -mindepth 1 -delete
: >/etc/machine-id
rm -f /var/lib/dbus/machine-id
# The day on which a password was last set would be the day of the build.
sed -i "s/^\([^:]*:[^:]*\):[0-9][0-9]*:/\1:$((SOURCE_DATE_EPOCH / 86400)):/" /etc/shadow

# A source file newer than the image's time would get another time stamp there, and its bytecode would not be used.
for folder in /usr/lib/python3 /usr/lib/python3.*; do
    [ -d "$folder" ] || continue
    newer=$(find "$folder" -name '*.py' -newermt "@$SOURCE_DATE_EPOCH" -print -exec touch -d "@$SOURCE_DATE_EPOCH" {} +)
    [ -z "$newer" ] ||
        PYTHONHASHSEED=0 python3 -m compileall -q --invalidation-mode timestamp "$folder" >/dev/null || true
done
