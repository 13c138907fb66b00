module github.com/gqlgen-ratelimit/ratelimit/contrib/clients

go 1.25.0

ignore ./node

require (
	github.com/Khan/genqlient v0.8.1
	github.com/gqlgen-ratelimit/ratelimit v0.0.0
	github.com/hasura/go-graphql-client v0.16.0
	github.com/stretchr/testify v1.12.1
	github.com/vektah/gqlparser/v2 v2.5.36
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/redis/go-redis/v9 v9.22.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/gqlgen-ratelimit/ratelimit => ../..
