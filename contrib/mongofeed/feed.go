package mongofeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says where a [Feed] keeps the revision.
type Config struct {
	// Collection has a document for each revision. It is required. It is read from the primary and by majority, and written by majority,
	// whatever its own options are.
	Collection *mongo.Collection
	// Name tells several policies of one collection apart: 1 to 64 characters of A-Z a-z 0-9 _ . and -. Empty means main.
	Name string
	// MaxDocument is the size in bytes of the largest policy document that [Feed.Publish] takes, as in policy.Config: what it
	// takes, followers have to take too. Zero means tiers.DefaultMaxDocument, and [MaxDocument] is the most.
	MaxDocument int
}

// MaxDocument is how many bytes a policy document has at most: a document of MongoDB has 16 MiB, and this one has other parts as well.
const MaxDocument = tiers.MaxDocument - 64<<10

// Feed is the policy.Feed and the policy.Publisher of a MongoDB. It is made by [New] and safe for concurrent use. Several followers may share one.
//
// A revision is a document whose _id is the name of the policy and the number of the revision that it follows: the unique index of
// the _id lets one revision follow another one, and so numbers are in the order in which they were written. The newest one
// has the largest _id. The others may be removed.
type Feed struct {
	collection  *mongo.Collection
	name        string
	maxDocument int
}

var (
	_ policy.Feed      = (*Feed)(nil)
	_ policy.Publisher = (*Feed)(nil)
)

// patience bounds a call whose context has no sooner deadline.
const patience = 10 * time.Second

var feedName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New returns the feed of a database. It does not connect. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Feed, error) {
	cfg.Name = cmp.Or(cfg.Name, "main")
	var errs []error
	if cfg.Collection == nil {
		errs = append(errs, errors.New("mongofeed: Config.Collection is nil: set the collection that has the policies"))
	}
	if !feedName.MatchString(cfg.Name) {
		errs = append(errs, fmt.Errorf("mongofeed: Config.Name is %.80q: write 1 to 64 characters of A-Z a-z 0-9 _ . -", cfg.Name))
	}
	if cfg.MaxDocument < 0 || cfg.MaxDocument > MaxDocument {
		errs = append(errs, fmt.Errorf("mongofeed: Config.MaxDocument is %d: write at most %d, or 0 for %d",
			cfg.MaxDocument, MaxDocument, tiers.DefaultMaxDocument))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Feed{collection: byMajority(cfg.Collection), name: cfg.Name, maxDocument: cfg.MaxDocument}, nil
}

// byMajority returns the collection as the primary has it, without what a failover could take back.
func byMajority(c *mongo.Collection) *mongo.Collection {
	return c.Clone(options.Collection().SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Majority()).
		SetWriteConcern(writeconcern.Majority()))
}

// String returns the collection and the name of the policy.
func (f *Feed) String() string { return place(f.collection) + "/" + f.name }

func place(c *mongo.Collection) string { return "mongodb:" + c.Database().Name() + "." + c.Name() }

// id is that of the revision that follows another one, 0 for none. In the order of texts they are in that of numbers.
func (f *Feed) id(follows uint64) string { return fmt.Sprintf("%s/%016d", f.name, follows) }

// mine are the documents of the policy.
func (f *Feed) mine() bson.D {
	return bson.D{{Key: "$gte", Value: f.name + "/"}, {Key: "$lt", Value: f.name + "0"}} // 0 comes after the slash
}

// stored is a revision as it is stored.
type stored struct {
	ID        string     `bson:"_id"`
	Number    int64      `bson:"number"`
	Hash      []byte     `bson:"hash"`
	Document  []byte     `bson:"document"`
	Author    string     `bson:"author,omitempty"`
	Reason    string     `bson:"reason,omitempty"`
	Published *time.Time `bson:"published,omitempty"`
	Signature []byte     `bson:"signature,omitempty"`
}

// Newest implements policy.Feed: it asks for number and hash, and for the document only if it is another one.
func (f *Feed) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	head, err := f.read(ctx, bson.D{{Key: "number", Value: 1}, {Key: "hash", Value: 1}})
	if err != nil {
		return nil, err
	}
	if r, err := decode(head); err != nil {
		return nil, err
	} else if r.Head() == have {
		return nil, nil
	}
	whole, err := f.read(ctx, nil)
	if err != nil {
		return nil, err
	}
	return decode(whole)
}

// read returns parts of the document with the newest revision. Nil are all of them.
func (f *Feed) read(ctx context.Context, parts bson.D) (bson.Raw, error) {
	opts := options.FindOne().SetSort(bson.D{{Key: "_id", Value: -1}})
	if parts != nil {
		opts.SetProjection(parts)
	}
	raw, err := f.collection.FindOne(ctx, bson.D{{Key: "_id", Value: f.mine()}}, opts).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, policy.ErrEmpty
	}
	return raw, wrap(err)
}

// decode reads what stands in a document. What a follower checks is not checked here.
func decode(raw bson.Raw) (*policy.Revision, error) {
	r := &policy.Revision{}
	number, ok := raw.Lookup("number").AsInt64OK()
	if !ok || number < 0 {
		return nil, malformed(r, errors.New("its number is none"))
	}
	r.Number = uint64(number)
	_, hash, ok := raw.Lookup("hash").BinaryOK()
	if !ok || len(hash) != len(r.Hash) {
		return nil, malformed(r, errors.New("its hash is none"))
	}
	copy(r.Hash[:], hash)
	var parts stored
	// The error would repeat what stands there.
	if bson.Unmarshal(raw, &parts) != nil {
		return nil, malformed(r, errors.New("a part of it has another type: document and signature are binary, author and reason texts, published is a date"))
	}
	r.Document, r.Author, r.Reason = parts.Document, parts.Author, parts.Reason
	if parts.Published != nil {
		r.Published = parts.Published.UTC()
	}
	if len(parts.Signature) > 0 {
		r.Signature = parts.Signature
	}
	return r, nil
}

// malformed is the refusal of what is no revision.
func malformed(r *policy.Revision, err error) error {
	return &policy.RefusedError{Revision: r.Head(), Reason: policy.ReasonMalformed, Err: err}
}

// Hints implements policy.Feed by a change stream.
func (f *Feed) Hints(ctx context.Context, wake func()) error {
	// What has no key is about the whole collection.
	about := bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "documentKey._id", Value: f.mine()}},
		bson.D{{Key: "documentKey", Value: bson.D{{Key: "$exists", Value: false}}}},
	}}}
	return watch(ctx, f.collection, mongo.Pipeline{{{Key: "$match", Value: about}}}, wake)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mongofeed: %w", err)
}
