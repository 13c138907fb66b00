package store

import (
	"slices"
)

// KeepUsage raises the time from which on there is usage, and returns it. It never goes back. Nothing older is written from then on;
// [UsageTx.RemoveUsage] removes what is there.
func (tx *UsageTx) KeepUsage(want UsageState) (UsageState, error) {
	tx.state = nil
	if err := tx.tx.exec("UPDATE usage_state SET minutes_from = "+tx.dialect.greatest("minutes_from", "$1")+", hours_from = "+tx.dialect.greatest("hours_from", "$2")+
		" WHERE id = 1", want.MinutesFrom, want.HoursFrom); err != nil {
		return UsageState{}, err
	}
	is, err := tx.kept()
	if err != nil {
		return UsageState{}, err
	}
	return *is, nil
}

// UsageRemoval is how far [UsageTx.RemoveUsage] has come. The zero value has not begun.
type UsageRemoval struct {
	table  int
	tenant []byte
	// Done says that all is removed.
	Done bool
}

// RemoveUsage removes what is forgotten of at most n tenants in one table, and returns how far it has come then. It may begin anew at any time.
func (tx *UsageTx) RemoveUsage(from UsageRemoval, n int) (UsageRemoval, error) {
	kept, err := tx.kept()
	if err != nil {
		return from, err
	}
	tables := [...]*countTable{&countTables[UsageHours], &countTables[UsageMinutes], &refusedTable}
	if from.table >= len(tables) {
		return UsageRemoval{Done: true}, nil
	}
	t := tables[from.table]
	tenants, err := tx.tx.tenantsIn(t.name, from.tenant, page(n))
	if err != nil {
		return from, err
	}
	if len(tenants) == 0 {
		return UsageRemoval{table: from.table + 1, Done: from.table+1 == len(tables)}, nil
	}
	err = tx.tx.exec("DELETE FROM "+t.name+" WHERE at < $1 AND tenant IN "+tx.dialect.arguments(2, len(tenants)), append([]any{t.from(kept)}, tenants...)...)
	last, _ := tenants[len(tenants)-1].([]byte)
	// The one that follows has a byte more.
	return UsageRemoval{table: from.table, tenant: append(slices.Clone(last), 0)}, err
}

// tenantsIn returns tenants that a table has, from one on. It looks at one row of each.
func (v *View) tenantsIn(table string, from []byte, n int) ([]any, error) {
	return many(v, func(row scanner, tenant *any) error {
		var name []byte
		err := row.Scan(&name)
		*tenant = stored(name)
		return err
	}, `WITH RECURSIVE t (tenant) AS (
			SELECT * FROM (SELECT tenant FROM `+table+` WHERE tenant >= $1 ORDER BY tenant LIMIT 1) AS f
			UNION ALL SELECT (SELECT u.tenant FROM `+table+` u WHERE u.tenant > t.tenant ORDER BY u.tenant LIMIT 1) FROM t WHERE t.tenant IS NOT NULL
		) SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT $2`, stored(from), n)
}
