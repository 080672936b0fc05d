// Package vaultapi speaks the vault interface of the service: it registers documents, uploads their packages, asks what
// became of them, and reads the index, the archived packages and the list of vaults.
//
// It reads leniently (unknown fields, numbers for strings, the several shapes that deployed services give) and sends
// strictly: frozen requests go out byte for byte, a package with its length and digest. It believes an answer only for
// what was asked: answers are matched by clientUUID alone, never by position, and whatever could send one invoice's
// content to another's place comes back as a finding, without a ticket.
//
// It keeps no state and repeats neither a registration nor an upload, so a crash leaves nothing here; what the caller
// committed before the call says what may have been done, and the Outcome of an [apicall.Error] says what is certain afterwards.
package vaultapi

import (
	"cmp"
	"context"
	"net/http"

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
	ContentType string                           // of a package, where its ticket names none; empty: application/octet-stream
}

// Client speaks the vault interface. It is safe for concurrent use.
type Client struct {
	api   *apicall.API
	store *apicall.Store
	now   func() archive.Instant

	accounts    map[archive.VaultID]*apicall.API // read only
	contentType string
}

// New returns a client for cfg. API, Store and Now are needed.
func New(cfg Config) *Client {
	return &Client{api: cfg.API, store: cfg.Store, now: cfg.Now, accounts: cfg.Accounts, contentType: cmp.Or(cfg.ContentType, "application/octet-stream")}
}

// Bounds of what an answer may have, in bytes. A record is a few hundred; the most that its fields may have is a tenth of
// perRecord, but nobody bounds a message, nor the parameters of a document.
const (
	perRecord    = 32 << 10
	recordAnswer = 256 << 10 // one status record alone
	vaultsAnswer = 4 << 20
	listed       = 500 // registrations that the status list tells of
)

// answerLimit bounds an answer of n records.
func answerLimit(n int) int64 { return int64(n+1) * perRecord }

// apiOf is the one place that chooses the credentials with which a vault is called.
func (c *Client) apiOf(v archive.VaultID) *apicall.API {
	if account, ok := c.accounts[v]; ok {
		return account
	}
	return c.api
}

// getJSON asks a vault.
func (c *Client) getJSON(ctx context.Context, v archive.VaultID, op string, limit int64, path ...string) (*apicall.Answer, error) {
	return c.apiOf(v).Do(ctx, apicall.Request{Op: op, Path: append([]string{"v1", "vaults", string(v)}, path...), Limit: limit,
		Header: http.Header{"Accept": {"application/json"}}})
}

// sanitizeMessage makes a text of the service fit for reports: one line of at most 498 characters.
func sanitizeMessage(s string) string { return sanitize.Message(s, 498) }
