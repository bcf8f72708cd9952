// Takes memory by C and by Go, and says whose malloc C has; for the recipe in docs/recipes.md.
package main

// #include <malloc.h>
// #include <stdlib.h>
// #include <string.h>
// extern const char *snug_version(void) __attribute__((weak));
// static const char *version(void) { return snug_version ? snug_version() : "no snug"; }
import "C"
import (
	"fmt"
	"unsafe"
)

func main() {
	total := 0
	done := make(chan int)
	for worker := 0; worker < 4; worker++ {
		go func() {
			sum := 0
			for i := 0; i < 10000; i++ {
				text := C.CString(fmt.Sprint(i))
				sum += int(C.strlen(text))
				C.free(unsafe.Pointer(text))
			}
			done <- sum
		}()
	}
	for worker := 0; worker < 4; worker++ {
		total += <-done
	}
	fmt.Println("sum", total, C.GoString(C.version()))
}
