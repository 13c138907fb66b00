package mongofeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Publish implements policy.Publisher: it adds the revision that follows the expected one, if that is the newest. After an error
// of the connection nobody knows whether the revision was published: publish it once more.
func (f *Feed) Publish(ctx context.Context, r *policy.Revision, expected uint64) error {
	if _, err := r.LoadWith(tiers.ParseConfig{MaxDocument: f.maxDocument}); err != nil {
		return err
	}
	if expected > policy.MaxNumber {
		return fmt.Errorf("mongofeed: revision %d is expected: no number is larger than %d", expected, uint64(policy.MaxNumber))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	newest, err := f.head(ctx)
	if err != nil {
		return err
	}
	if newest.Number == expected && r.Number > expected {
		// Who else publishes over the same one wants the same _id.
		_, err := f.collection.InsertOne(ctx, f.stored(r, expected))
		if !mongo.IsDuplicateKeyError(err) {
			return wrap(err)
		}
		if newest, err = f.head(ctx); err != nil {
			return err
		}
	}
	if newest == r.Head() {
		return nil
	}
	return &policy.ConflictError{Newest: newest}
}

func (f *Feed) stored(r *policy.Revision, follows uint64) *stored {
	next := &stored{
		ID: f.id(follows), Number: int64(r.Number), Hash: r.Hash[:], Document: r.Document,
		Author: r.Author, Reason: r.Reason, Signature: r.Signature,
	}
	if !r.Published.IsZero() {
		at := time.UnixMilli(r.Published.UnixMilli()).UTC()
		next.Published = &at
	}
	return next
}

// head returns number and hash of the newest revision, as far as they are some.
func (f *Feed) head(ctx context.Context) (newest policy.Head, _ error) {
	raw, err := f.read(ctx, bson.D{{Key: "number", Value: 1}, {Key: "hash", Value: 1}})
	if errors.Is(err, policy.ErrEmpty) {
		return newest, nil
	}
	if err != nil {
		return newest, err
	}
	if number, ok := raw.Lookup("number").AsInt64OK(); ok && number > 0 {
		newest.Number = uint64(number)
	}
	if _, hash, ok := raw.Lookup("hash").BinaryOK(); ok {
		copy(newest.Hash[:], hash)
	}
	return newest, nil
}
