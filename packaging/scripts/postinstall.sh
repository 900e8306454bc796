#!/bin/sh
# After the files of the package are there: the first time, or instead of an older version.
set -e
found=
for f in /etc/systemd/system/munge.service /lib/systemd/system/munge.service /usr/lib/systemd/system/munge.service; do
	if [ -e "$f" ]; then found=1; fi
done
if [ -z "$found" ]; then
	mkdir -p /etc/systemd/system
	cp /usr/share/muster/munge.service /etc/systemd/system/munge.service
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# A daemon that runs takes the new program; jobs run on.
	systemctl try-restart muster-server.service muster-client.service
fi
