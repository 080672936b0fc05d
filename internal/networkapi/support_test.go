package networkapi

import (
	"net/http"
	"testing"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
)

const bumID archive.RemoteID = "10d90000-0000-5000-8000-00000000000a"

// client returns a client whose requests h answers, for every host.
func client(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	return New(Config{API: api(t, apicall.Config{Transport: calls.Over(h)})})
}

func api(t *testing.T, cfg apicall.Config) *apicall.API {
	t.Helper()
	api, _ := calls.New(t, cfg)
	return api
}
