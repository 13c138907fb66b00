package tiers

import (
	"net/http"
	"slices"
	"strings"
)

// parameters checks what keys are made of.
func (c *checker) parameters(at path, parameters map[string]Parameter) {
	if len(parameters) > maxParameters {
		c.fail(at, "%d parameters; at most %d fit", len(parameters), maxParameters)
	}
	for _, name := range sorted(parameters) {
		p, at := parameters[name], at.to(name)
		c.label(at, "the name of a parameter", name)
		if slices.Contains(ownParameters, name) || name == strings.TrimSuffix(documentPrefix, ":") {
			c.fail(at, "%s is taken; tenant, team, user and tier are what the subject and the policy say", echo(name))
		}
		sources := 0
		for _, given := range []bool{p.Header != "", p.Claim != "", p.Query != "", p.Path != 0, p.Variable != ""} {
			if given {
				sources++
			}
		}
		switch {
		case sources == 0:
			c.lacks(at, empty, "an empty parameter; a header, claim, query, path or variable fits")
		case sources > 1:
			c.fail(at, "several sources; one of header, claim, query, path and variable fits")
		case p.Path < 0 || p.Path > maxSegment:
			c.fail(at.to("path"), "segment %d; 1 to %d fit", p.Path, maxSegment)
		case p.Variable != "":
			c.path(at.to("variable"), p.Variable)
		case p.Header != "" && http.CanonicalHeaderKey(p.Header) == p.Header && strings.ContainsAny(p.Header, " :\r\n\x00"):
			c.fail(at.to("header"), "%s is no name of a header", echo(p.Header))
		}
		for _, name := range []string{p.Header, p.Claim, p.Query} {
			if name != "" {
				c.longName(at, "the name of a source", name)
			}
		}
	}
}

// custom checks custom limits, those of a tenant or of all.
func (c *checker) custom(at path, custom map[string]CustomRule, own bool) {
	most := maxCustom
	if own {
		most = maxOwnCustom
	}
	if len(custom) > most {
		c.fail(at, "%d custom limits; at most %d fit, and those of a tenant in its record", len(custom), most)
	}
	seen, shapes := make(map[string]string), make(map[string]bool)
	for _, spelled := range sorted(custom) {
		rule, at := custom[spelled], at.to(spelled)
		c.customRule(at, &rule)
		key, err := ParseKey(spelled)
		if err != nil {
			c.fail(at, "%v", err)
			continue
		}
		if other, twice := seen[key.String()]; twice {
			c.fail(at, "the same key as %s", echo(other))
		}
		seen[key.String()] = spelled
		for _, name := range key.Names() {
			if _, named := c.policy.Parameters[name]; !named && !slices.Contains(ownParameters, name) {
				c.fail(at, "the policy has no parameter %s; parameters say where a request has it", echo(name))
			}
		}
		switch tenant := key.Value(parameterTenant) != ""; {
		case tenant && own:
			c.fail(at, "the key names a tenant; it stands under one")
		case tenant && rule.Across:
			c.fail(at.to("across"), "the key is that of one tenant, and no other could share it")
		}
		shapes[strings.Join(key.Names(), ",")] = true
	}
	if len(shapes) > maxShapes {
		c.fail(at, "keys of %d combinations of names; at most %d fit", len(shapes), maxShapes)
	}
}

func (c *checker) customRule(at path, rule *CustomRule) {
	c.modes(at, rule.Mode, rule.EnforceFrom, rule.FailMode)
	if len(rule.Limits) == 0 {
		c.lacks(at, empty, "an empty rule; limits fit")
	}
	c.limits(at.to("limits"), rule.Limits, nil, "there is no limit before that of a key")
	c.undivided(at.to("limits"), rule.Limits)
	switch {
	case !rule.Instead:
	case rule.Across:
		c.fail(at.to("instead"), "all tenants share the budget, which can stand in the place of none; one of the two fits")
	case len(rule.Limits) > 0 && !slices.ContainsFunc(sorted(rule.Limits), func(name string) bool { return rule.Limits[name].bounds() }):
		c.fail(at.to("instead"), "the requests would be under no limit; one in points or requests fits, without soft")
	}
}
