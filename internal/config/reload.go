package config

import "slices"

// Reload reads the configuration again and checks it against this machine and against old, the one in use. Its error is an [*Error]
// when something in the file is wrong.
func Reload(path string, env Env, old Config) (Config, error) {
	next, err := Load(path, env)
	if err != nil {
		return Config{}, err
	}
	next.checkUnchanged(old)
	if err := next.doc.faultsAsError(); err != nil {
		return Config{}, err
	}
	return next, next.CheckMachine(env)
}

// checkUnchanged refuses changes that need a restart: its ledger is open and
// bound to the services, and port and socket are in use. A service that is new
// to old may be added.
func (c *Config) checkUnchanged(old Config) {
	const restart = "put it back, or restart vaultd instead: systemctl restart vaultd"
	const bound = "put it back; a ledger is bound to one environment and one address of each service, and another one needs a state_dir and a vaultd of its own"
	fixed := func(same bool, path, hint string) {
		c.applyRules(rule{!same, locationOf(path), "cannot change while vaultd runs", hint, nil})
	}
	fixed(c.StateDir == old.StateDir, "state_dir", restart)
	fixed(c.Service.Environment == old.Service.Environment, "service.environment", bound)
	for _, a := range c.Addresses() {
		for _, was := range old.Addresses() {
			fixed(a.Key != was.Key || a.URL == was.URL, a.Key, bound)
		}
	}
	fixed(c.TimeZone == old.TimeZone, "time_zone", restart)
	fixed(c.HTTP.Listen == old.HTTP.Listen, "http.listen", restart)
	fixed((c.HTTP.CertFile == "") == (old.HTTP.CertFile == ""), "http.cert_file", restart)
	fixed((c.HTTP.Access.UsersFile == "") == (old.HTTP.Access.UsersFile == ""), "http.access.users_file", restart)
	proxy, oldProxy := c.HTTP.Access.Proxy, old.HTTP.Access.Proxy
	fixed((proxy.SecretFile == "") == (oldProxy.SecretFile == ""), "http.access.proxy.secret_file", restart)
	fixed(proxy.Socket == oldProxy.Socket, "http.access.proxy.socket", restart)
	fixed(proxy.Group == oldProxy.Group, "http.access.proxy.group", restart)
	fixed(slices.Equal(c.Access.Groups, old.Access.Groups), "access.groups", restart)
}
