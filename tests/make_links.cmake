# Makes a link to PROGRAM under each of NAMES in FOLDER.
foreach(name ${NAMES})
  file(CREATE_LINK ${PROGRAM} ${FOLDER}/${name} SYMBOLIC)
endforeach()
