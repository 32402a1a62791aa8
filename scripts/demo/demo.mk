# SPDX-License-Identifier: Apache-2.0
# The demo program of `make run`: stripped as it would be in production, its debuginfo beside it.
#   $(O)/demo/cairn-demo         what runs
#   $(O)/demo/cairn-demo.debug   what is uploaded later
DEMO_CFLAGS := -std=gnu17 -O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id

$(O)/demo/cairn-demo: scripts/demo/demo.c scripts/demo/demo.mk
	@mkdir -p $(@D)
	$(if $(Q),@echo "  DEMO   $@")
	$(Q)$(CC) $(DEMO_CFLAGS) -o $@.full $<
	$(Q)objcopy --only-keep-debug $@.full $@.debug
	$(Q)strip --strip-all -o $@ $@.full
	$(Q)rm -f $@.full

demo: $(O)/demo/cairn-demo
.PHONY: demo
