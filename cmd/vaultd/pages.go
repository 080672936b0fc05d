package main

import (
	"context"
	"errors"
	"net"

	"vaultd/internal/config"
	"vaultd/internal/web"
)

// listenPages opens the port of the pages with the gate before it; without an address there is none.
func (h *host) listenPages(ctx context.Context, c config.HTTP) (net.Listener, error) {
	if c.Listen == "" {
		return nil, nil
	}
	access, faults := readPageAccess(c, h.a.env)
	if len(faults) > 0 { // checked before, so it has just changed
		return nil, fail(exitConfig, faults[0].Err, "see http."+faults[0].Key+" in the configuration")
	}
	l, err := web.Listen(ctx, c.Listen, access)
	switch {
	case errors.Is(err, web.ErrNotLocal):
		return nil, fail(exitConfig, err, "set http.cert_file, http.key_file and http.password_file, or write 127.0.0.1 and a port in http.listen")
	case err != nil:
		return nil, fail(exitTemporary, err, "another program may use the port; change http.listen, or write it empty for none")
	}
	h.gate = web.NewGate(access)
	h.log.Info("pages answer", "address", l.Addr().String(), "tls", access.TLS(), "password", c.PasswordFile != "")
	return l, nil
}

// renewAccess lets the certificate and the password count as they are now. Where they cannot be read the ones before
// go on: the reload has just found them good.
func (h *host) renewAccess(c config.HTTP) {
	if h.gate == nil {
		return
	}
	access, faults := readPageAccess(c, h.a.env)
	if len(faults) > 0 {
		h.log.Error("certificate and password of the pages not renewed", "key", faults[0].Key, "err", faults[0].Err)
		return
	}
	h.gate.Set(access)
}

func readPageAccess(c config.HTTP, env config.Env) (web.Access, []config.PortFault) {
	access, faults := c.ReadPortSecrets(env)
	if len(faults) > 0 {
		return web.Access{}, faults
	}
	return web.NewAccess(access.Certificate, string(access.Password)), nil
}
