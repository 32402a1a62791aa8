# SPDX-License-Identifier: Apache-2.0
# The demo program of `make run`: stripped as it would be in production, its debuginfo beside it.
#   $(O)/demo/cairn-demo         what runs
#   $(O)/demo/cairn-demo.debug   what is uploaded later
# gcc drops the frame pointer of leaf functions that do not touch the stack, whatever it is told; the stack protector
# makes all functions touch it.
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
