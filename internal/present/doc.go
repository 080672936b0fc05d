// Package present renders what the program knows for people and for scripts: the texts and JSON objects of status, list,
// show, why and find, and the forms of sizes, ages, times and states that all of them share.
//
// It changes nothing and reads nothing but the ledger. What it decides is only what people are told: what needs them, why
// an entry waits, and which actions the ledger allows. Every text of unknown origin goes through package
// sanitize before it is shown; a JSON object keeps such a text as it is, and the encoder escapes it. Field names of JSON
// objects and their order never change: scripts depend on them.
//
// It keeps no state, so a crash means nothing here.
//
// Its exported names are many because the JSON objects of four commands consist of them.
package present
