# $1 is the number of versions that stay: 0 if the package goes, 1 at an upgrade.
if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
    systemctl --no-reload disable --now refrain.socket refrain-metrics.socket refrain.service || true
fi
