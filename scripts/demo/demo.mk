# SPDX-License-Identifier: Apache-2.0
# The demo program of `make run`: stripped as it would be in production, with its debuginfo in a separate file.
#   $(O)/demo/cairn-demo         the program to run
#   $(O)/demo/cairn-demo.debug   the debuginfo to upload later
# gcc omits the frame pointer in leaf functions that do not use the stack, regardless of its options; the stack protector
# makes every function use it.
DEMO_CFLAGS := -std=gnu17 -O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fstack-protector-all \
	-fno-optimize-sibling-calls -Wl,--build-id

$(O)/demo/cairn-demo: scripts/demo/demo.c scripts/demo/demo.mk
	@mkdir -p $(@D)
	$(if $(Q),@echo "  DEMO   $@")
	$(Q)$(CC) $(DEMO_CFLAGS) -o $@.full $<
	$(Q)objcopy --only-keep-debug $@.full $@.debug
	$(Q)strip --strip-all -o $@ $@.full
	$(Q)rm -f $@.full

demo: $(O)/demo/cairn-demo
.PHONY: demo
