#!/usr/bin/env bash
# Makes what compose.yaml has as secrets, in the folder secrets beside it: passwords by chance, and the configuration of gqlratelimitd with one of
# them. What is there already stays. The token of Prometheus comes from gqlratelimitd: docs/guide/monitoring.md.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
for name in postgres_password grafana_password; do
	if [[ ! -s secrets/$name ]]; then
		od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$name"
	fi
done
if [[ ! -s secrets/gqlratelimitd.yml ]]; then
	cat >secrets/gqlratelimitd.yml <<END
listen: 0.0.0.0:8470
plainText: true
data: /var/lib/gqlratelimitd
database: postgres://gqlratelimitd:$(cat secrets/postgres_password)@postgres:5432/gqlratelimitd?sslmode=disable
redis: redis://redis:6379
END
fi
touch secrets/metrics_token
# The programs in the containers are other users than you. The folder keeps others out.
chmod 0700 secrets
chmod 0644 secrets/*
