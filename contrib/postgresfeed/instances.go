package postgresfeed

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const (
	// life is after which time an instance that says nothing is forgotten.
	life = 3 * policy.ReportEvery
	// maxInstances is how many there may be.
	maxInstances = 10_000
)

const (
	seenSQL = `
UPDATE {schema}.policy_instance SET seen = clock_timestamp(), status = $3::json
WHERE name = $1::text AND instance = $2::text`

	forgottenSQL = `
DELETE FROM {schema}.policy_instance
WHERE name = $1::text AND seen < clock_timestamp() - make_interval(secs => $2::float8)`

	joinedSQL = `
INSERT INTO {schema}.policy_instance (name, instance, seen, status)
SELECT $1::text, $2::text, clock_timestamp(), $3::json
WHERE (SELECT count(*) FROM {schema}.policy_instance WHERE name = $1::text) < $4::bigint
ON CONFLICT (name, instance) DO UPDATE SET seen = excluded.seen, status = excluded.status`

	instancesSQL = `
SELECT instance, seen, CASE WHEN octet_length(status::text) <= $3::bigint THEN status::text ELSE '' END
FROM {schema}.policy_instance
WHERE name = $1::text AND seen >= clock_timestamp() - make_interval(secs => $2::float8)
	AND octet_length(instance) <= $4::bigint
ORDER BY instance LIMIT $5::bigint`
)

// Report implements policy.Reporter: the database keeps for half a minute what this instance serves.
func (f *Feed) Report(ctx context.Context, s policy.Status) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := s.Report()
	tag, err := f.pool.Exec(ctx, f.sql.seen, pgx.QueryExecModeExec, f.name, f.instance, said)
	if err != nil || tag.RowsAffected() > 0 {
		return wrap(err)
	}
	// Who comes takes away those who have gone.
	if _, err := f.pool.Exec(ctx, f.sql.forgotten, pgx.QueryExecModeExec, f.name, life.Seconds()); err != nil {
		return wrap(err)
	}
	tag, err = f.pool.Exec(ctx, f.sql.joined, pgx.QueryExecModeExec, f.name, f.instance, said, int64(maxInstances))
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("postgresfeed: more than %d instances report", maxInstances)
	}
	return wrap(err)
}

// Instances returns the instances that have reported within half a minute, by name. Those whose report cannot be read are
// left out, and the error says how many.
func (f *Feed) Instances(ctx context.Context) ([]policy.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := f.pool.Query(ctx, f.sql.instances, pgx.QueryExecModeExec,
		f.name, life.Seconds(), int64(policy.MaxReport), int64(policy.MaxInstanceName), int64(maxInstances))
	if err != nil {
		return nil, wrap(err)
	}
	defer rows.Close()
	var all []policy.Instance
	unread := 0
	for rows.Next() {
		var name, status string
		var seen time.Time
		if err := rows.Scan(&name, &seen, &status); err != nil {
			return nil, wrap(err)
		}
		instance := policy.Instance{Name: name, Seen: seen.UTC()}
		if json.Unmarshal([]byte(status), &instance.Status) != nil {
			unread++
			continue
		}
		all = append(all, instance)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(err)
	}
	if unread > 0 {
		return all, fmt.Errorf("postgresfeed: the reports of %d instances cannot be read", unread)
	}
	return all, nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("postgresfeed: %w", err)
}
