# Run as a script at build time: asks the command STOKER for its shell completions and puts them into
# the folder OUT. A command that writes none for a shell is passed over.
file(MAKE_DIRECTORY ${OUT})
foreach(shell bash zsh fish)
  execute_process(COMMAND ${STOKER} completion ${shell}
                  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_QUIET)
  if(code EQUAL 0 AND NOT text STREQUAL "")
    file(WRITE ${OUT}/stoker.${shell} "${text}")
  else()
    file(REMOVE ${OUT}/stoker.${shell})
  endif()
endforeach()
file(WRITE ${OUT}/done "")
