#!/bin/sh
# Downloads what the faults with the device VMClock need, without rights, into a directory of the
# user's cache: the newest cloud kernel of Debian's trixie-backports, and, where
# the installed QEMU has no such device, that of bookworm-backports. They come from the archive of Debian that this
# machine is configured with. The lists of packages are its own, so apt-get installs nothing of them later.
set -eu
to=${XDG_CACHE_HOME:-$HOME/.cache}/tickflake/vmclock
[ -z "$(ls "$to"/boot/vmlinuz-* 2>/dev/null)" ] || exit 0
archive=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" && $2 == "main" {print $3; exit}')
[ -n "$archive" ] || { echo "no source of this machine is an archive of Debian whose lists are here: add one, or run apt-get update" >&2; exit 1; }
mkdir -p "$to"
cd "$(mktemp -d "$to/download-XXXXXX")"
trap 'rm -rf "$PWD"' EXIT
mkdir -p lists/partial cache/archives/partial
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in bookworm-backports trixie-backports; do
	echo "deb [signed-by=$keys arch=amd64] $archive $suite main"
done >sources.list
printf '%s "%s";\n' Dir::Etc::sourcelist "$PWD/sources.list" Dir::Etc::sourceparts - Dir::State::lists "$PWD/lists" \
	Dir::Cache "$PWD/cache" APT::Sandbox::User "$(id -un)" >apt.conf
export APT_CONFIG="$PWD/apt.conf"
apt-get update
kernel=$(apt-cache madison linux-image-cloud-amd64 | awk '/trixie-backports/ {print $3; exit}')
version=$(apt-cache show "linux-image-cloud-amd64=$kernel" | sed -n 's/^Depends:.*linux-image-\([^ ,]*-cloud-amd64\).*/\1/p')
apt-get download "linux-base-$version" "linux-binary-$version" "linux-modules-$version"
if qemu-system-x86_64 -device vmclock,help 2>&1 | grep -q 'not found'; then
	qemu=$(apt-cache madison qemu-system-x86 | awk '/bookworm-backports/ {print $3; exit}')
	apt-get download "qemu-system-x86=$qemu" "qemu-system-data=$qemu" "seabios/bookworm-backports"
fi
for package in *.deb; do dpkg-deb -x "$package" .; done
modules=usr/lib/modules/$version
find "$modules" -name '*.ko.xz' -exec xz -d {} +
rm -rf "$to/usr" "$to/lib"
mkdir -p "$to/boot" "$to/lib/modules" "$to/usr"
if [ -e usr/bin/qemu-system-x86_64 ]; then mv usr/bin usr/share "$to/usr/"; fi
mv "$modules/vmlinuz" "vmlinuz-$version"
mv "$modules" "$to/lib/modules/"
mv "vmlinuz-$version" "$to/boot/" # last: it says that all is there
