#!/bin/sh
# Before the files go. dpkg says "remove" or "upgrade", rpm how many versions will be left.
set -e
case $1 in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --quiet --now slurmctld.service slurmd.service slurmdbd.service muster-server.service muster-client.service
		if cmp -s /usr/share/muster/munge.service /etc/systemd/system/munge.service; then
			systemctl disable --quiet --now munge.service
		fi
	fi
	if cmp -s /usr/share/muster/munge.service /etc/systemd/system/munge.service; then
		rm -f /etc/systemd/system/munge.service
	fi
	;;
esac
