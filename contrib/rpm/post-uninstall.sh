if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    if [ "$1" -ge 1 ]; then
        systemctl try-restart refrain.service || true
    fi
fi
