// Package vaultapi is the client of the vault interface of the service, with its whole wire format. It registers documents,
// uploads their packages, asks for their status, and reads the index, archived packages and the list of vaults.
//
// It reads leniently: unknown fields, numbers for texts, the several forms that deployed services use. It sends strictly: the
// bytes of a registration are frozen, and a package goes with its length and digest. It matches answers by clientUUID alone,
// never by position. Whatever could send one invoice's content to the place of another one comes back without a ticket.
//
// It keeps no state, and it repeats neither a registration nor an upload. So a crash leaves nothing here. What may have been done
// follows from what the caller committed before the call; what is certain after a failed call is the Outcome of its
// [apicall.Error].
package vaultapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// Config is what a Client works with.
type Config struct {
	API   *apicall.API
	Store *apicall.Store
	Now   func() archive.Instant // asked before a registration leaves

	Accounts    map[archive.VaultID]*apicall.API // of vaults with credentials of their own; all others are called through API
	Window      time.Duration                    // the longest that a ticket is used; zero: 15 minutes
	ContentType string                           // of a package, where its ticket names none; empty: application/octet-stream
}

// Client speaks the vault interface. It is safe for concurrent use.
type Client struct {
	api   *apicall.API
	store *apicall.Store
	now   func() archive.Instant

	accounts    map[archive.VaultID]*apicall.API // read only
	window      time.Duration
	contentType string
}

// defaultWindow is how long the service waits for the package of a registration.
const defaultWindow = 15 * time.Minute

// New returns a client for cfg. API, Store and Now are needed.
func New(cfg Config) *Client {
	return &Client{api: cfg.API, store: cfg.Store, now: cfg.Now, accounts: cfg.Accounts,
		window: cmp.Or(cfg.Window, defaultWindow), contentType: cmp.Or(cfg.ContentType, "application/octet-stream")}
}

// Limits of answers, in bytes. A record has a few hundred bytes. Its bounded fields have at most a tenth of perRecord, but a
// message and the parameters of a document have no bound.
const (
	perRecord    = 32 << 10
	recordAnswer = 256 << 10 // one status record alone
	vaultsAnswer = 4 << 20
	listed       = 500 // registrations in the status list
)

// answerLimit bounds an answer of n records.
func answerLimit(n int) int64 { return int64(n+1) * perRecord }

// apiOf returns the client with the credentials of a vault. No other function chooses credentials.
func (c *Client) apiOf(v archive.VaultID) *apicall.API {
	if account, ok := c.accounts[v]; ok {
		return account
	}
	return c.api
}

// getJSON makes a GET below the address of a vault.
func (c *Client) getJSON(ctx context.Context, v archive.VaultID, op string, limit int64, path ...string) (*apicall.Answer, error) {
	return c.apiOf(v).Do(ctx, apicall.Request{Op: op, Path: append([]string{"v1", "vaults", string(v)}, path...), Limit: limit,
		Header: http.Header{"Accept": {"application/json"}}})
}

// sanitizeMessage makes a text of the service fit for reports: one line of at most 498 characters.
func sanitizeMessage(s string) string { return sanitize.Message(s, 498) }
