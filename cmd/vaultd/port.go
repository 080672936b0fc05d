package main

import (
	"context"
	"errors"
	"net"

	"vaultd/internal/config"
	"vaultd/internal/web"
)

// listenPages opens the web port and the proxy's socket, as far as the configuration has them, and makes the guard in front of both.
func (h *host) listenPages(ctx context.Context, c config.HTTP) (all []net.Listener, err error) {
	if c.Listen == "" && c.Access.Proxy.Socket == "" {
		return nil, nil
	}
	access, faults := readPageAccess(c, h.a.env)
	if len(faults) > 0 { // the check before found them good, so they changed just now
		return nil, fail(exitConfig, faults[0].Err, "see http."+faults[0].Key+" in the configuration")
	}
	if c.Listen != "" {
		l, err := web.Listen(ctx, c.Listen, access)
		switch {
		case errors.Is(err, web.ErrNotLocal):
			return nil, fail(exitConfig, err, "set http.cert_file, http.key_file and http.access.users_file, or write 127.0.0.1 and a port in http.listen")
		case err != nil:
			return nil, fail(exitTemporary, err, "another program may use the port; change http.listen, or write it empty for none")
		}
		all = append(all, l)
		h.log.Info("pages answer", "address", l.Addr().String(), "tls", access.HasTLS(), "users", access.HasUsers(), "proxy", access.HasProxy())
	}
	if c.Access.Proxy.Socket != "" {
		l, err := listenProxy(c.Access.Proxy, h.log)
		if err != nil {
			return nil, errors.Join(err, closeListeners(all))
		}
		all = append(all, l)
		h.log.Info("pages answer the proxy", "socket", c.Access.Proxy.Socket, "group", c.Access.Proxy.Group)
	}
	h.guard = web.NewAccessGuard(access, h.log)
	return all, nil
}

func closeListeners(all []net.Listener) (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
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
	proxy := web.Proxy{}
	if p := c.Access.Proxy; p.IsUsed() {
		proxy = web.Proxy{UserHeader: p.UserHeader, Rights: map[string]web.Rights{}, Secret: string(access.ProxySecret)}
		for name, rights := range p.UserRights() {
			proxy.Rights[name] = web.Rights(rights)
		}
	}
	return web.NewAccess(access.Certificate, users, proxy), nil
}
