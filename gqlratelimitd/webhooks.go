package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/dispatch"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/seal"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

// webhookOptions say where events of the instances are, and what endpoints of tenants may be.
type webhookOptions struct {
	// Key is a file with the key that encrypts secrets and URLs in the database, which is made if it is not there.
	Key string `yaml:"key"`
	// Topics are those of the streams. None means ratelimit.denials and ratelimit.thresholds.
	Topics []string `yaml:"topics"`
	// AllowNetworks, AllowPlain and Ports are those of webhook.SenderConfig: without them endpoints are public, and have TLS at port 443.
	AllowNetworks []netip.Prefix `yaml:"allowNetworks"`
	AllowPlain    []string       `yaml:"allowPlain"`
	Ports         []uint16       `yaml:"ports"`
	// DeadDays is for how many days messages are kept that are tried no more. 0 means 30.
	DeadDays int `yaml:"deadDays"`
}

// maxDeadDays is for how long messages are kept that are tried no more, at most.
const maxDeadDays = 400

// register registers the flags.
func (o *webhookOptions) register(flags *flag.FlagSet) {
	flags.StringVar(&o.Key, "webhook-key", o.Key, "`file` with the key that encrypts the secrets of webhooks (default webhook.key in the folder of -data)")
}

// complete fills in defaults, and returns what is wrong.
func (o *webhookOptions) complete(data string) error {
	o.Key = cmp.Or(o.Key, filepath.Join(data, "webhook.key"))
	var mistakes []error
	for i, topic := range o.Topics {
		if err := stream.CheckTopic(topic); err != nil {
			mistakes = append(mistakes, fmt.Errorf("webhooks.topics[%d]: %w", i, err))
		}
	}
	if o.DeadDays < 0 || o.DeadDays > maxDeadDays {
		mistakes = append(mistakes, fmt.Errorf("webhooks.deadDays is %d: write 1 to %d, or 0 for 30", o.DeadDays, maxDeadDays))
	}
	_, err := o.sender()
	return errors.Join(append(mistakes, err)...)
}

func (o *webhookOptions) sender() (*webhook.Sender, error) {
	return webhook.NewSender(webhook.SenderConfig{AllowNetworks: o.AllowNetworks, AllowPlain: o.AllowPlain, Ports: o.Ports})
}

// openWebhooks has control know how endpoints are kept. Without a Redis there are no events, and so no endpoints.
func (d *daemon) openWebhooks(cfg *control.Config) error {
	if d.redis == nil {
		return nil
	}
	name := d.options.Webhooks.Key
	text, err := secretFile(name, func() (string, error) { return seal.NewKey(), nil })
	if err != nil {
		return err
	}
	box, err := seal.New(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sender, err := d.options.Webhooks.sender()
	if err != nil {
		return err
	}
	cfg.Webhooks = &control.WebhookConfig{Box: box, CheckURL: sender.CheckURL, Changed: func() { d.dispatcher.Wake() }}
	return nil
}

// openDispatcher makes what brings events to endpoints.
func (d *daemon) openDispatcher(ctx context.Context) error {
	if d.redis == nil {
		return nil
	}
	client := d.redis
	if d.stream != nil {
		client = d.stream
	}
	if err := d.control.CheckWebhookKey(ctx); err != nil {
		return fmt.Errorf("%w: all daemons of a database have one key: copy %s from the first one", err, d.options.Webhooks.Key)
	}
	sender, err := d.options.Webhooks.sender()
	if err != nil {
		return err
	}
	//nolint:contextcheck // That its counters are 0 is of no request.
	d.dispatcher, err = dispatch.New(dispatch.Config{
		Store: d.db, Client: client, Namespace: d.options.Namespace, Topics: d.options.Webhooks.Topics, Sender: sender,
		Endpoint: d.endpoint, Gone: d.gone, KeepDead: time.Duration(d.options.Webhooks.DeadDays) * 24 * time.Hour, Logger: d.log, MeterProvider: d.metrics,
	})
	return err
}

// endpoint returns an endpoint as it is now. Where the database is away, or this daemon has another key, it is not the endpoint that has failed.
func (d *daemon) endpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	to, err := d.control.WebhookEndpoint(ctx, id)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		err = errors.Join(err, delivery.ErrLater)
	}
	return to, err
}

// gone notes that an endpoint wants no message any more, also while the daemon ends.
func (d *daemon) gone(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := d.control.WebhookGone(ctx, id); err != nil {
		d.log.Error("an endpoint that is gone was not switched off, and is told so again", "endpoint", id, "error", err)
	}
}
