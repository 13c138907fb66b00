package mongofeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

const (
	// life is after which time an instance that says nothing is forgotten.
	life = 3 * policy.ReportEvery
	// maxInstances is how many there may be.
	maxInstances = 10_000
)

// Report implements policy.Reporter: the database keeps what this instance serves. Who comes anew removes those who have said
// nothing for half a minute.
func (f *Feed) Report(ctx context.Context, s policy.Status) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	self := bson.D{{Key: "_id", Value: f.name + "/" + f.instance}}
	done, err := f.instances.UpdateOne(ctx, self, bson.D{
		{Key: "$set", Value: bson.D{{Key: "name", Value: f.name}, {Key: "instance", Value: f.instance}, {Key: "status", Value: s.Report()}}},
		{Key: "$currentDate", Value: bson.D{{Key: "seen", Value: true}}},
	}, options.UpdateOne().SetUpsert(true))
	if err != nil || done.UpsertedCount == 0 {
		return wrap(err)
	}
	since, err := f.alive(ctx)
	if err != nil {
		return err
	}
	ofPolicy := bson.E{Key: "name", Value: f.name}
	gone := bson.D{ofPolicy, {Key: "seen", Value: bson.D{{Key: "$lt", Value: since}}}}
	if _, err := f.instances.DeleteMany(ctx, gone); err != nil {
		return wrap(err)
	}
	n, err := f.instances.CountDocuments(ctx, bson.D{ofPolicy})
	if err == nil && n > maxInstances {
		_, err = f.instances.DeleteOne(ctx, self)
		err = errors.Join(fmt.Errorf("more than %d instances report", maxInstances), err)
	}
	return wrap(err)
}

// alive is since when an instance has to have said something, by the clock of the server.
func (f *Feed) alive(ctx context.Context) (time.Time, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	err := f.instances.Database().RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	return hello.LocalTime.Add(-life), wrap(err)
}

// Instances returns the instances that have reported within half a minute, by name. Those whose report cannot be read are
// left out, and the error says how many.
func (f *Feed) Instances(ctx context.Context) ([]policy.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	since, err := f.alive(ctx)
	if err != nil {
		return nil, err
	}
	seen := bson.D{{Key: "name", Value: f.name}, {Key: "seen", Value: bson.D{{Key: "$gte", Value: since}}}}
	rows, err := f.instances.Find(ctx, seen, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(maxInstances))
	if err != nil {
		return nil, wrap(err)
	}
	defer func() { _ = rows.Close(context.WithoutCancel(ctx)) }()
	var all []policy.Instance
	unread := 0
	for rows.Next(ctx) {
		var row struct {
			Instance string    `bson:"instance"`
			Seen     time.Time `bson:"seen"`
			Status   string    `bson:"status"`
		}
		err := rows.Decode(&row)
		instance := policy.Instance{Name: row.Instance, Seen: row.Seen.UTC()}
		if err != nil || len(row.Status) > policy.MaxReport || policy.CheckInstanceName(row.Instance) != nil ||
			json.Unmarshal([]byte(row.Status), &instance.Status) != nil {
			unread++
			continue
		}
		all = append(all, instance)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(err)
	}
	if unread > 0 {
		return all, fmt.Errorf("mongofeed: the reports of %d instances cannot be read", unread)
	}
	return all, nil
}
