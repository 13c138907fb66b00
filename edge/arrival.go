package edge

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

type arrivalKey struct{}

// arrival is what the door knows of a request, which a WebSocket has once for all its operations.
type arrival struct {
	door *Door
	// client and site are the networks of the address, and key is a hash of the API key. Each is empty if there is none.
	client, site, key string
	// socket is nil without a WebSocket.
	socket *socket
	// inContext says that the context of the request leads to it.
	inContext bool
	// began says that an operation has come.
	began atomic.Bool
	// found is what the cache of documents had for the operation that is being read, and turn the last turn of a document.
	found atomic.Pointer[cachedDocument]
	turn  atomic.Pointer[slot]
	// values is how many values of JSON a request of HTTP holds.
	values atomic.Int64
}

// arrivalFrom returns the arrival of the request that ctx belongs to, nil if it did not come through [Door.Handler].
func arrivalFrom(ctx context.Context) *arrival {
	a, _ := ctx.Value(arrivalKey{}).(*arrival)
	return a
}

// names are for whom something counts: a client, its site and its key. An empty one is nobody.
type names [3]string

func (a *arrival) names() (whose names) {
	for i, of := range [...]struct{ prefix, name string }{{"client ", a.client}, {"site ", a.site}, {"key ", a.key}} {
		if of.name != "" {
			whose[i] = of.prefix + of.name
		}
	}
	return whose
}

func (d *Door) arrive(r *http.Request) *arrival {
	a := &arrival{door: d, key: d.keyOf(r), inContext: true}
	address := d.proxies.Client(inbound.Peer(r), r.Header)
	if !address.IsValid() {
		d.noAddress.Do(func() {
			d.cfg.Observe.Logger.Warn("edge: the address of a client is not known, as on a Unix socket: limits of addresses do not hold")
		})
		return a
	}
	a.client, a.site = d.levels.Names(address)
	if a.site == a.client {
		a.site = ""
	}
	return a
}

// keyOf returns what stands for the API key of a request, from which nobody finds the key.
func (d *Door) keyOf(r *http.Request) string {
	key := ""
	switch cfg := &d.cfg.Key; {
	case cfg.Find != nil:
		guard.Run(r.Context(), d.cfg.Observe.Logger, "edge.Config.Key.Find", func() { key = cfg.Find(r) })
	case cfg.Header != "":
		key = r.Header.Get(cfg.Header)
	}
	if key == "" {
		return ""
	}
	hash := sha256.New()
	_, _ = hash.Write(d.secret[:])
	_, _ = hash.Write([]byte(key))
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.EncodeToString(hash.Sum(sum[:0])[:16])
}

// take takes an amount from the limits of the client, the site and the key. Where one refuses, those before it have
// been charged: what arrives again and again is paid by who sends it.
func (a *arrival) take(ctx context.Context, unit bucket.Unit, n int64) *refusal {
	d := a.door
	for _, of := range [...]struct {
		prefix, name, layer string
		limits              *bucket.Limits
	}{
		{"client ", a.client, LayerAddress, d.client},
		{"site ", a.site, LayerAddress, d.site},
		{"key ", a.key, LayerKey, d.key},
	} {
		if of.name == "" {
			continue
		}
		if refusal := d.take(ctx, a, of.prefix+of.name, of.layer, of.limits, unit, n); refusal != nil {
			return refusal
		}
	}
	return nil
}
