package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxUsageNames is how many names of a kind a tenant has in an hour, a day or a month, and owners of a limit on a day: those of most decisions or crossings. All others
// have one together, named *. Instances tell few names a minute, and a client that takes others in each could have as many as there are minutes.
const MaxUsageNames = 1000

// others is the name of what has no row of its own, as it stands in a statement.
func (d Dialect) others() string {
	if d == PostgreSQL {
		return fmt.Sprintf(`'\x%x'::bytea`, otherUsage)
	}
	return fmt.Sprintf("x'%x'", otherUsage)
}

// kinds are the keys of a table but the one of which not all values have a row.
func (t *usageTable) kinds() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(t.keys), func(key string) bool { return key == t.folds }), ", ")
}

// crowded tells tenants of which so many names of a kind have a row at a time from others.
func (tx *UsageTx) crowded(t *usageTable, at int64, tenants []any, names int) (crowded, others []any, _ error) {
	if t.folds == "" {
		return nil, tenants, nil
	}
	found, err := many(&tx.tx.View, func(row scanner, tenant *string) error {
		var raw []byte
		err := row.Scan(&raw)
		*tenant = string(raw)
		return err
	}, "SELECT DISTINCT tenant FROM (SELECT tenant FROM "+t.name+" WHERE at = $1 AND tenant IN "+tx.dialect.arguments(2, len(tenants))+" AND "+t.folds+" <> "+tx.dialect.others()+
		" GROUP BY tenant, "+t.kinds()+" HAVING count(*) >= "+strconv.Itoa(names)+") found", append([]any{at}, tenants...)...)
	for _, tenant := range tenants {
		if name, ok := tenant.([]byte); ok && slices.Contains(found, string(name)) {
			crowded = append(crowded, tenant)
		} else {
			others = append(others, tenant)
		}
	}
	return crowded, others, err
}

// fold computes what tenants have at a time of which not all names have a row. Rows of names that have none now, because more was counted of others since, here or in
// the level below, are removed: there are more than [MaxUsageNames] before that.
func (tx *UsageTx) fold(t *usageTable, at int64, tenants []any) error {
	for _, tenant := range tenants {
		args := []any{at, t.begins(at), t.begins(at + 1), tenant}
		if err := tx.tx.exec(tx.dialect.foldSums(t, tx.names), args...); err != nil {
			return err
		}
		keys := strings.Join(t.keys, ", ")
		if err := tx.tx.exec("DELETE FROM "+t.name+" WHERE at = $1 AND tenant = $4 AND "+t.folds+" <> "+tx.dialect.others()+" AND ("+keys+") NOT IN (SELECT "+keys+
			" FROM "+tx.dialect.ranked(t)+" WHERE place <= "+strconv.Itoa(tx.names)+")", args...); err != nil {
			return err
		}
	}
	return nil
}

// foldSums is the statement that computes what such a tenant has at a time, of which so many names have a row.
func (d Dialect) foldSums(t *usageTable, names int) string {
	columns := []string{"tenant", "CAST($1 AS " + d.of("{integer}") + ")"}
	groups := []string{"1"}
	for i, key := range t.keys {
		if key == t.folds {
			key = "CASE WHEN place <= " + strconv.Itoa(names) + " THEN " + key + " ELSE " + d.others() + " END"
		}
		columns, groups = append(columns, key), append(groups, strconv.Itoa(i+3))
	}
	for _, n := range t.numbers {
		columns = append(columns, d.sum(n))
	}
	// Without a condition SQLite takes what follows for one of a join.
	return d.putSums(t, "SELECT "+strings.Join(columns, ", ")+" FROM "+d.ranked(t)+" WHERE true GROUP BY "+strings.Join(groups, ", "))
}

// ranked are the sums of such a tenant, each with its place among those of its kind. What has no name of its own below has the first one, beside the others.
func (d Dialect) ranked(t *usageTable) string {
	columns := append([]string{"tenant"}, t.keys...)
	groups := strings.Join(columns, ", ")
	for _, n := range t.numbers {
		columns = append(columns, d.sum(n)+" AS "+n)
	}
	return "(SELECT " + strings.Join(columns, ", ") + ", row_number() OVER (PARTITION BY " + t.kinds() + ", " + t.folds + " = " + d.others() +
		" ORDER BY " + d.sum(t.most) + " DESC, " + t.folds + ") AS place FROM " + t.below + " WHERE " + t.at + " >= $2 AND " + t.at + " < $3 AND tenant = $4 GROUP BY " + groups + ") ranked"
}
