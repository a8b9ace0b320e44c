#!/usr/bin/env bash
# The faults of tickflake in someone else's CI: the steps of action.yml, and of any other CI. Run it
# in the directory of the project that is tested, with Go installed.
#
#     PACKAGE=./ids ci.sh catalogue                          the tests of a Go package that call generatortest.Test
#     ci.sh install                                          QEMU, and a kernel of Debian; on Debian
#     PROGRAM=./ids-server FAULTS=step-back-1s ci.sh kernel  a program that prints one ID per line
#
# RUN is a pattern of go test -run, FLAGS are further flags of tickflake-chaos kernel. REPORTS is the directory
# for catalogue.xml and kernel.txt (default chaos-reports). Broken promises are printed, and the exit code is not 0 then.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
reports=${REPORTS:-chaos-reports}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

build() { # PACKAGE NAME: with the versions of the clone, whatever the project that is tested has; "go run" links once
	(cd "$here/../../cmd/tickflake-chaos" && go run -exec cp "$1" "$tools/$2")
}

root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

case ${1-} in
catalogue)
	mkdir -p "$reports"
	build github.com/jstemmer/go-junit-report/v2 go-junit-report
	go test -v -count=1 -run "${RUN:-.}" "${PACKAGE:?want a Go package}" 2>&1 | "$tools/go-junit-report" -iocopy -out "$reports/catalogue.xml"
	grep -q '<testcase' "$reports/catalogue.xml" || { echo "no test ran: check PACKAGE and RUN" >&2; exit 1; }
	;;
install)
	missing=()
	for tool in qemu-system-x86_64:qemu-system-x86 mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
	done
	if [ ${#missing[@]} -gt 0 ]; then
		root apt-get update
		root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
	fi
	if [ -z "${TICKFLAKE_KERNEL-}" ]; then
		kernel() { apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; }
		kernel || root apt-get update # a container has no lists
		kernel || { echo "no source of this machine has linux-image-cloud-amd64: run on Debian, or name a kernel in TICKFLAKE_KERNEL (docs/evidence.md)" >&2; exit 1; }
	fi
	build . tickflake-chaos
	"$tools/tickflake-chaos" kernel none --subject rs/xid # downloads the kernel, and boots it
	;;
kernel)
	mkdir -p "$reports"
	build . tickflake-chaos
	read -rd '' -a words <<<"${FAULTS-} ${FLAGS-}" || true # of several lines, too; the end of the text is no failure
	"$tools/tickflake-chaos" kernel --program "${PROGRAM:?want the path of a program}" "${words[@]}" | tee "$reports/kernel.txt"
	;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
