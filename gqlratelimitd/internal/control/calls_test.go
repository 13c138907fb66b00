package control_test

import "github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"

func publishOf(s *scene) func(control.Request, control.PublishInput) (*control.Published, error) {
	return func(r control.Request, in control.PublishInput) (*control.Published, error) {
		return s.Publish(s.ctx(), r, in)
	}
}

func revertOf(s *scene) func(control.Request, control.RevertInput) (*control.Published, error) {
	return func(r control.Request, in control.RevertInput) (*control.Published, error) {
		return s.Revert(s.ctx(), r, in)
	}
}

func putTenantOf(s *scene) func(control.Request, control.TenantInput) (*control.Tenant, error) {
	return func(r control.Request, in control.TenantInput) (*control.Tenant, error) {
		return s.PutTenant(s.ctx(), r, in)
	}
}

func removeTenantOf(s *scene) func(control.Request, control.RemoveTenantInput) (*control.Tenant, error) {
	return func(r control.Request, in control.RemoveTenantInput) (*control.Tenant, error) {
		return s.RemoveTenant(s.ctx(), r, in)
	}
}

func allocateOf(s *scene) func(control.Request, control.AllocateInput) (*control.Tenant, error) {
	return func(r control.Request, in control.AllocateInput) (*control.Tenant, error) {
		return s.Allocate(s.ctx(), r, in)
	}
}

func setOverrideOf(s *scene) func(control.Request, control.OverrideInput) (*control.Override, error) {
	return func(r control.Request, in control.OverrideInput) (*control.Override, error) {
		return s.SetOverride(s.ctx(), r, in)
	}
}

func clearOverrideOf(s *scene) func(control.Request, control.ClearOverrideInput) (*control.Override, error) {
	return func(r control.Request, in control.ClearOverrideInput) (*control.Override, error) {
		return s.ClearOverride(s.ctx(), r, in)
	}
}

func switchModeOf(s *scene) func(control.Request, control.SwitchInput) (*control.ModeSwitch, error) {
	return func(r control.Request, in control.SwitchInput) (*control.ModeSwitch, error) {
		return s.SwitchMode(s.ctx(), r, in)
	}
}
