package config

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func accountAt(name string) location { return location{"service", "accounts", name} }

// credentials gives the credentials of each account and where they stand, the main ones first.
func (s *Service) credentials() iter.Seq2[location, Auth] {
	return func(yield func(location, Auth) bool) {
		if !yield(location{"service", "auth"}, s.Auth) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.Accounts)) {
			if !yield(accountAt(name), s.Accounts[name]) {
				return
			}
		}
	}
}

// checkAccounts looks at the credentials of all accounts.
func (c *Config) checkAccounts() {
	c.checkAuth(&c.Service.Auth, location{"service", "auth"})
	for _, name := range slices.Sorted(maps.Keys(c.Service.Accounts)) {
		if !accountName.MatchString(name) {
			c.fault("is no name of an account", "write a short name of letters, digits, dots, dashes and underscores, such as beta", accountAt(name)...)
		}
		a := c.Service.Accounts[name]
		c.checkAuth(&a, accountAt(name))
		c.Service.Accounts[name] = a
	}
}

// checkAccountOf looks at the account of a drop: there is one of that name, and no other drop calls the same vault with
// another one.
func (c *Config) checkAccountOf(i int) {
	d, loc := c.Drops[i], dropAt(i).child("account")
	if _, known := c.Service.Accounts[d.Account]; d.Account != "" && !known {
		names := slices.Sorted(maps.Keys(c.Service.Accounts))
		hint := "service.accounts has " + strings.Join(names, ", ")
		if meant := nearest(d.Account, names); meant != "" {
			hint = "did you mean " + meant + "?"
		} else if len(names) == 0 {
			hint = "write it under service.accounts, or leave account out"
		}
		if c.doc.sound(accountAt(d.Account)) {
			c.fault("is none of service.accounts", hint, loc...)
		}
		return
	}
	for j, earlier := range c.Drops[:i] {
		if c.written(d.Vault, dropAt(i).child("vault")...) && d.Vault == earlier.Vault && d.Account != earlier.Account && c.doc.sound(dropAt(j).child("account")) {
			c.fault(fmt.Sprintf("is another account than that of drops[%d], which has the same vault", j), "a vault has one account: write the same in both", loc...)
			return
		}
	}
}
