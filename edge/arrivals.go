package edge

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// arrivals find whose requests are. They are safe for concurrent use.
type arrivals struct {
	proxies *inbound.Proxies
	levels  inbound.Levels
	key     *KeyConfig
	// secret is hashed with keys.
	secret [32]byte
	logger *slog.Logger
	// noAddress is said once.
	noAddress sync.Once
}

func newArrivals(cfg *Config) *arrivals {
	s := &arrivals{proxies: (*inbound.Proxies)(&cfg.Proxies), levels: cfg.Address.levels(), key: &cfg.Key, logger: cfg.Observe.Logger}
	_, _ = rand.Read(s.secret[:]) // never fails
	return s
}

// of returns the arrival of a request.
func (s *arrivals) of(r *http.Request) *arrival {
	a := &arrival{key: s.keyOf(r), inContext: true}
	address := s.proxies.Client(inbound.Peer(r), r.Header)
	if !address.IsValid() {
		s.noAddress.Do(func() {
			s.logger.Warn("edge: the address of a client is not known, as on a Unix socket: limits of addresses do not hold")
		})
		return a
	}
	a.client, a.site = s.levels.Names(address)
	if a.site == a.client {
		a.site = ""
	}
	return a
}

// keyOf returns what stands for the API key of a request, from which nobody finds the key.
func (s *arrivals) keyOf(r *http.Request) string {
	key := ""
	switch cfg := s.key; {
	case cfg.Find != nil:
		guard.Run(r.Context(), s.logger, "edge.Config.Key.Find", func() { key = cfg.Find(r) })
	case cfg.Header != "":
		key = r.Header.Get(cfg.Header)
	}
	if key == "" {
		return ""
	}
	hash := sha256.New()
	_, _ = hash.Write(s.secret[:])
	_, _ = hash.Write([]byte(key))
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.EncodeToString(hash.Sum(sum[:0])[:16])
}
