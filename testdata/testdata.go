// Package testdata holds a dozen small invoice folders as people drop them, in two drop folders: what the demo drops, what the
// README shows, and what tests take. All of it was written for vaultd; the companies do not exist.
//
// Copy one into a drop folder of your own to try vaultd with it. Schulz 3 is faulty on purpose: its date is not understood, and
// its amount is no number. Otto 19 Kopie is the same invoice as Otto 19. The service of the demo refuses Kern 6.
package testdata

import "embed"

// Drops has the folders acme-in and beta-in, and in them one folder for each invoice.
//
//go:embed acme-in beta-in
var Drops embed.FS
