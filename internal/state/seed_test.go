package state_test

import _ "github.com/gqlgen-ratelimit/ratelimit/internal/seed" // the same cases in every run
