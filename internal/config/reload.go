package config

import "slices"

// Reload reads the configuration again and holds it against this machine and against the one that is in use. Its error is an
// [*Error] where something in the file is wrong.
func Reload(path string, env Env, old Config) (Config, error) {
	next, err := Load(path, env)
	if err != nil {
		return Config{}, err
	}
	next.keepFixed(old)
	if err := next.doc.err(); err != nil {
		return Config{}, err
	}
	return next, next.CheckMachine(env)
}

// keepFixed refuses what cannot change while vaultd runs: the ledger is open and bound to one
// service, and port and socket are in use.
func (c *Config) keepFixed(old Config) {
	const restart = "put it back, or restart vaultd instead: systemctl restart vaultd"
	const bound = "put it back; a ledger is bound to one environment and one service, and another one needs a state_dir and a vaultd of its own"
	for _, f := range []struct {
		same bool
		hint string
		loc  location
	}{
		{c.StateDir == old.StateDir, restart, location{"state_dir"}},
		{c.Service.Environment == old.Service.Environment, bound, location{"service", "environment"}},
		{c.Service.BaseURL == old.Service.BaseURL, bound, location{"service", "base_url"}},
		{c.TimeZone == old.TimeZone, restart, location{"time_zone"}},
		{c.HTTP.Listen == old.HTTP.Listen, restart, location{"http", "listen"}},
		{(c.HTTP.CertFile == "") == (old.HTTP.CertFile == ""), restart, location{"http", "cert_file"}},
		{(c.HTTP.PasswordFile == "") == (old.HTTP.PasswordFile == ""), restart, location{"http", "password_file"}},
		{slices.Equal(c.Access.Groups, old.Access.Groups), restart, location{"access", "groups"}},
	} {
		if !f.same {
			c.fault("cannot change while vaultd runs", f.hint, f.loc...)
		}
	}
}
