#!/bin/sh
# After the files are gone. The data folder, which makes the machine a member, goes only with dpkg --purge.
set -e
case $1 in
purge) rm -rf /var/lib/muster /run/muster /etc/muster ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
