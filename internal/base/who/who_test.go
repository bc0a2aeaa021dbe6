package who

import (
	"context"
	"testing"

	"chancery/internal/base/fault"
)

func TestNobodyIsRefusedAsUnauthenticated(t *testing.T) {
	c := From(context.Background())
	if err := c.Need(Public); err != nil {
		t.Errorf("public was refused: %v", err)
	}
	if got := fault.KindOf(c.Need(AuditRead)); got != fault.Unauthenticated {
		t.Errorf("nobody without a permission: %v, want %v", got, fault.Unauthenticated)
	}
	if c.MayUse("people") {
		t.Error("nobody may use an authority")
	}
}

func TestCallerHasWhatItsSetSays(t *testing.T) {
	ctx := With(context.Background(), Caller{Kind: Person, Name: "alice", Permissions: Set{AuditRead}, Authorities: []string{"people"}})
	c := From(ctx)
	if err := c.Need(AuditRead); err != nil {
		t.Errorf("a held permission was refused: %v", err)
	}
	if got := fault.KindOf(c.Need(AccountManage)); got != fault.Denied {
		t.Errorf("a missing permission: %v, want %v", got, fault.Denied)
	}
	if !c.MayUse("people") || c.MayUse("agents") {
		t.Error("the scope of authorities is not kept")
	}
}

func TestAndOnlyNarrows(t *testing.T) {
	both := Set{AuditRead, TokenOwn}.And(Set{TokenOwn, AccountManage})
	if len(both) != 1 || !both.Has(TokenOwn) {
		t.Errorf("And = %v, want only %v", both, TokenOwn)
	}
}
