getent group refrain >/dev/null || groupadd --system refrain
getent passwd refrain >/dev/null || useradd --system --gid refrain --home-dir /var/lib/refrain \
    --no-create-home --shell /sbin/nologin --comment "Refrain, a database proxy" refrain
