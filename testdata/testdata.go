// Package testdata holds a dozen small invoice folders as people drop them, in two drop folders: what the demo drops, what the
// README shows, and what tests take. extracts has what the accounts-payable system booked of them, by day, and acme-out has
// what is to be sent over the business network; received has what comes in over it. All of it was written for vaultd; the companies
// do not exist.
//
// Copy one into a drop folder of your own to try vaultd with it. Schulz 3 is faulty on purpose: its date is not understood, and
// its amount is no number. Otto 19 Kopie is the same invoice as Otto 19. The service of the demo refuses Kern 6. The network of the
// demo rejects RE 5002 some seconds after it has delivered it, and GS 12 is faulty on purpose: a digit of its recipient's number is missing.
package testdata

import "embed"

// Drops has the folders acme-in and beta-in, and in them one folder for each invoice.
//
//go:embed acme-in beta-in
var Drops embed.FS

// Network has the folder acme-out, and in it one folder for each document that is to be sent.
//
//go:embed acme-out
var Network embed.FS

// Received has the folder received, and in it one folder for each document that comes in over the business network: what
// "vaultd emulate --received" takes.
//
//go:embed received
var Received embed.FS

// Extracts has one folder for each extract, and the table definition: what "vaultd emulate --extracts" takes. The invoices of the sample
// folders are booked; so is one that nobody dropped, and no extract covers 30 October 2026.
//
//go:embed extracts
var Extracts embed.FS
