// Package docs holds tests of the pages for people who read the code: what they name exists.
//
// It never changes a page, and nothing imports it.
package docs
