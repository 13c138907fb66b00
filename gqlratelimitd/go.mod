module github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd

go 1.25.0

replace github.com/gqlgen-ratelimit/ratelimit => ../

require (
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.33.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
