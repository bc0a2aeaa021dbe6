package capability_test

import (
	"fmt"
	"time"

	"chancery/capability"
)

func ExampleDecide() {
	grant, _ := capability.Parse(`sql:select:*{"max_rows":100}`)
	limit, _ := capability.Parse(`constraint:session:idle-timeout{"seconds":300}`)
	small := capability.Operation{Name: "sql:select:orders", Parameters: []byte(`{"max_rows":20}`), Time: time.Now()}
	large := capability.Operation{Name: "sql:select:orders", Parameters: []byte(`{"max_rows":500}`), Time: time.Now()}

	obligations, err := capability.Decide(capability.Set{grant}, capability.Set{limit}, small)
	fmt.Println(obligations.IdleTimeout, err)
	_, err = capability.Decide(capability.Set{grant}, capability.Set{limit}, large)
	fmt.Println(err)
	// Output:
	// 5m0s <nil>
	// parameter_exceeds_grant: 500 is more than the 100 granted for "max_rows"
}
