package redisclient

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// OpenLate is [Open] in a process that is late with everything from when the function is called.
func OpenLate(cfg Config) (client redis.UniversalClient, late func(), err error) {
	known := newNodes()
	client, err = open("", cfg, known)
	return client, func() {
		// Until then the process has been late just before.
		until := time.Now().Add(time.Hour)
		known.process.Note(time.Now(), until, 0)
	}, err
}
