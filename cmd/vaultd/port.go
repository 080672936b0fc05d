package main

import (
	"context"
	"errors"
	"net"

	"vaultd/internal/config"
	"vaultd/internal/web"
)

// listenPages opens the port of the HTML pages and makes the guard in front of them. Without an address it does nothing.
func (h *host) listenPages(ctx context.Context, c config.HTTP) (net.Listener, error) {
	if c.Listen == "" {
		return nil, nil
	}
	access, faults := readPageAccess(c, h.a.env)
	if len(faults) > 0 { // the check before found them good, so they changed just now
		return nil, fail(exitConfig, faults[0].Err, "see http."+faults[0].Key+" in the configuration")
	}
	l, err := web.Listen(ctx, c.Listen, access)
	switch {
	case errors.Is(err, web.ErrNotLocal):
		return nil, fail(exitConfig, err, "set http.cert_file, http.key_file and http.access.users_file, or write 127.0.0.1 and a port in http.listen")
	case err != nil:
		return nil, fail(exitTemporary, err, "another program may use the port; change http.listen, or write it empty for none")
	}
	h.guard = web.NewAccessGuard(access, h.log)
	h.log.Info("pages answer", "address", l.Addr().String(), "tls", access.HasTLS(), "users", access.HasUsers())
	return l, nil
}

// renewAccess reads the certificate and the users again. When they cannot be read, the ones before stay in use: the reload
// found them good a moment ago.
func (h *host) renewAccess(c config.HTTP) {
	if h.guard == nil {
		return
	}
	access, faults := readPageAccess(c, h.a.env)
	if len(faults) > 0 {
		h.log.Error("certificate and users of the pages not renewed", "key", "http."+faults[0].Key, "err", faults[0].Err)
		return
	}
	h.guard.SetAccess(access)
}

func readPageAccess(c config.HTTP, env config.Env) (web.Access, []config.PortFault) {
	access, faults := c.ReadPortSecrets(env)
	if len(faults) > 0 {
		return web.Access{}, faults
	}
	users := make([]web.User, 0, len(access.Users))
	for _, u := range access.Users {
		users = append(users, web.User{Name: u.Name, Hash: string(u.Hash), Rights: web.Rights(u.Rights)})
	}
	return web.NewAccess(access.Certificate, users), nil
}
