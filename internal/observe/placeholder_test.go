package observe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
)

func TestThereIsNoSpanUntilAProviderIsSet(t *testing.T) { //nolint:paralleltest // The provider is that of the process.
	r, err := observe.New(observe.Config{}, nil)
	require.NoError(t, err)
	ctx := context.Background()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		within, span := r.Start(ctx)
		if within != ctx || span.IsRecording() {
			t.Error("there is one")
		}
	}))

	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider())
	defer otel.SetTracerProvider(before)
	_, span := r.Start(ctx)
	require.True(t, span.IsRecording(), "a reporter that was made before finds it")
	span.End()
}
