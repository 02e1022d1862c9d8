# Run a program with code and layer where Lambda mounts them, and read-only as there:
#   unshare --mount sh lambda_sandbox.sh TASK LAYER PROGRAM [ARGUMENT…]
# The mounts are this process's own and end with it.
set -e
readonly_at() { mount --bind "$1" "$2" && mount -o remount,bind,ro "$2"; }
mount -t tmpfs tmpfs /var && mkdir /var/task
mount -t tmpfs tmpfs /opt && mkdir /opt/python
readonly_at "$1" /var/task
readonly_at "$2/python" /opt/python
cd /var/task
shift 2
exec "$@"
