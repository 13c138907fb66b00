package postgresfeed

import "strings"

// Plans returns what instances ask, with values in it.
func (r *Records) Plans() map[string]string {
	with := func(sql string, values ...string) string { return strings.NewReplacer(values...).Replace(sql) }
	return map[string]string{
		"a tenant": with(r.sql.tenant, "$1", "'main'", "$2", "'tenant-5'", "$3", "65536"),
		"changes": with(r.sql.changes, "$1", "'main'", "$2", "(SELECT origin FROM "+strings.TrimSuffix(r.hints.payload, ".main")+".directory_head)",
			"$3", "99000", "$4", "1001"),
	}
}
